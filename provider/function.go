package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// keyFunction writes the key of an object, as imports take it.
type keyFunction struct{}

func (keyFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "key"
}

func (keyFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Writes the key of an object",
		MarkdownDescription: "Returns the key of an object from the attributes that identify it, as imports take it: " +
			"`provider::qod::key(\"pool\", { tenant = \"acme\", name = \"bi\" })` is `acme/bi`. Inside names `/`, `:` and `%` are escaped.",
		Parameters: []function.Parameter{
			kindParameter(),
			function.MapParameter{
				Name: "attributes", ElementType: types.StringType,
				MarkdownDescription: "The attributes that identify it, by name.",
			},
		},
		Return: function.StringReturn{},
	}
}

func (keyFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var name string
	var values map[string]string
	if resp.Error = req.Arguments.Get(ctx, &name, &values); resp.Error != nil {
		return
	}
	k, err := kindOf(name)
	if err != nil {
		resp.Error = err
		return
	}
	attrs := k.Empty().AsValueMap()
	for _, attr := range slices.Sorted(maps.Keys(values)) {
		if !k.Identifies(attr) {
			resp.Error = function.NewArgumentFuncError(1, fmt.Sprintf("%q is not part of the key of a %s: want %s", attr, k.Name, k.KeyForm()))
			return
		}
		attrs[attr] = cty.StringVal(values[attr])
	}
	at, failed := k.ParseKey(k.Addr(cty.ObjectVal(attrs)).Path)
	if failed != nil || len(k.KeyValues(at)) != len(values) {
		resp.Error = function.NewArgumentFuncError(1, fmt.Sprintf("these do not name a %s: want %s", k.Name, k.KeyForm()))
		return
	}
	resp.Error = resp.Result.Set(ctx, at.Path)
}

// parseKeyFunction is the inverse of keyFunction.
type parseKeyFunction struct{}

func (parseKeyFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "parse_key"
}

func (parseKeyFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Reads the key of an object",
		MarkdownDescription: "Returns the attributes that a key is made of, by name: `provider::qod::parse_key(\"pool_grant\", \"acme/bi/user:ana\")` " +
			"is `{ tenant = \"acme\", pool = \"bi\", user = \"ana\" }`.",
		Parameters: []function.Parameter{
			kindParameter(),
			function.StringParameter{Name: "key", MarkdownDescription: "The key."},
		},
		Return: function.MapReturn{ElementType: types.StringType},
	}
}

func (parseKeyFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var name, key string
	if resp.Error = req.Arguments.Get(ctx, &name, &key); resp.Error != nil {
		return
	}
	k, err := kindOf(name)
	if err != nil {
		resp.Error = err
		return
	}
	at, failed := k.ParseKey(key)
	if failed != nil {
		resp.Error = function.NewArgumentFuncError(1, failed.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, k.KeyValues(at))
}

func kindParameter() function.Parameter {
	return function.StringParameter{Name: "kind", MarkdownDescription: "The kind, as in `pool`."}
}

func kindOf(name string) (*schema.Kind, *function.FuncError) {
	k, ok := schema.Lookup(name)
	if !ok {
		var names []string
		for _, k := range schema.Kinds() {
			names = append(names, k.Name)
		}
		return nil, function.NewArgumentFuncError(0, fmt.Sprintf("%q is not a kind.%s", name, schema.DidYouMean(name, names)))
	}
	return k, nil
}
