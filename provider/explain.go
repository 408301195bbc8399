package provider

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// report adds an error at a path, or at the resource as a whole.
func report(diags *diag.Diagnostics, at path.Path, summary, detail string) {
	if len(at.Steps()) == 0 {
		diags.AddError(summary, detail)
		return
	}
	diags.AddAttributeError(at, summary, detail)
}

// explain adds what the server says of a change, at the arguments that it is about.
func (r *kindResource) explain(diags *diag.Diagnostics, verb string, at schema.Addr, err error) {
	summary := fmt.Sprintf("Cannot %s %s", verb, at)
	var refused *client.Error
	if !errors.As(err, &refused) {
		diags.AddError(summary, sentence(err.Error()))
		return
	}
	for _, d := range refused.Each() {
		detail := sentence(d.Message)
		switch d.Code {
		case client.Unauthenticated:
			detail += " Check the provider's token, or user and password."
		case client.Revision:
			detail += " Somebody changed it since this was planned: plan again."
		}
		report(diags, argument(r.kind, d.Path), summary, detail)
	}
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

var inBody = regexp.MustCompile(`^(?:changes\[\d+\]\.)?(?:(` + attrProtected + `)$|spec\.([a-z_]+)(?:\[\d+\])?(?:\.([a-z_]+))?)`)

// argument returns where in a resource that is which the server calls changes[0].spec.nodes.read.
func argument(k *schema.Kind, at string) path.Path {
	m := inBody.FindStringSubmatch(at)
	if m == nil {
		return path.Empty()
	}
	if m[1] != "" {
		return path.Root(m[1])
	}
	if _, ok := k.Attr(m[2]); ok {
		return path.Root(m[2])
	}
	b, ok := k.Block(m[2])
	switch {
	case !ok:
		return path.Empty()
	case b.Single && m[3] != "":
		return path.Root(b.Name).AtName(m[3])
	}
	return path.Root(b.Name)
}
