package main

import (
	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/export"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

func newRender(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "render [ADDRESS...]",
		Short: "Print what the configuration evaluates to",
		Long: "render evaluates the configuration and prints the result as configuration: variables, for_each and modules are\n" +
			"resolved. It looks at no state and no network. Sensitive values are left out, with a comment in their place.",
		Example: "  qod render\n  qod render pool.bi --var memory=2GiB",
	}
	cmd.ValidArgsFunction = a.completeWritten
	vars := varFlags(cmd)
	inJSON := cmd.Flags().Bool("json", false, "write HCL's JSON syntax, as in files named *.qod.json")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c, err := a.evaluate(*vars)
		if err != nil {
			return err
		}
		document, err := c.rendered(args)
		if err != nil {
			return err
		}
		return a.writeDocument(document, *inJSON, "")
	}
	return cmd
}

// rendered is the evaluated configuration, or the objects of it at some addresses.
func (c *configuration) rendered(addresses []string) (*export.Document, error) {
	desired := map[string]schema.Object{}
	var all []store.Object
	for _, o := range c.Objects {
		desired[o.Address] = o
		all = append(all, store.Object{Kind: o.Kind, Spec: o.Value, Address: o.Address})
	}
	some, err := chosen(all, addresses)
	if err != nil {
		return nil, err
	}
	var objects []export.Object
	for _, s := range some {
		o := desired[s.Address]
		objects = append(objects, export.Object{
			Kind: o.Kind, Address: o.Address, Value: o.Value, Sensitive: o.Sensitive, Lifecycle: o.Lifecycle,
		})
	}
	options := export.Options{Shown: true}
	if len(addresses) == 0 {
		options.Stack, options.Outputs = c.Stack, c.Outputs
	}
	return export.New(options, objects)
}
