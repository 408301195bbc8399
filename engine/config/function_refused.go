package config

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// refusal is the error of a function that Terraform has and qod never will. It quotes no argument.
type refusal struct{ reason string }

func (r refusal) Error() string { return r.reason }

// refusedFunctions say why they are not there and what to use instead.
func refusedFunctions() map[string]function.Function {
	const equal = "it gives another answer each time, and equal configurations must give equal plans"
	const machine = "its answer depends on the machine, and equal configurations must give equal plans"
	reasons := map[string]string{
		"abspath":    machine + "; paths are relative to the configuration directory",
		"bcrypt":     equal + "; give a user a password, or a password_verifier made once",
		"pathexpand": machine + "; paths are relative to the configuration directory",
		"timestamp":  equal + "; plantimestamp() is one time for a whole plan, and a variable can carry any other",
		"uuid":       equal + "; uuidv5(namespace, name) makes the same UUID from the same name",
	}
	all := map[string]function.Function{}
	for name, reason := range reasons {
		all[name] = function.New(&function.Spec{
			VarParam: &function.Parameter{
				Name: "args", Type: cty.DynamicPseudoType,
				AllowNull: true, AllowUnknown: true, AllowDynamicType: true, AllowMarked: true,
			},
			Type: func([]cty.Value) (cty.Type, error) { return cty.NilType, refusal{reason} },
			Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
				return cty.NilVal, fmt.Errorf("refused: %w", refusal{reason})
			},
		})
	}
	return all
}

// withoutPanic takes the stack out of the message of a function that has no answer for its arguments: it
// names places of the machine that built the program.
func withoutPanic(d *hcl.Diagnostic) {
	call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
	if !ok {
		return
	}
	var panicked function.PanicError
	if errors.As(call.FunctionCallError(), &panicked) {
		d.Detail = "The function " + call.CalledFunctionName() + " cannot be called with such arguments."
	}
}

// isRefusal reports whether a diagnostic is about a call of a function that is refused.
func isRefusal(d *hcl.Diagnostic) bool {
	call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
	if !ok {
		return false
	}
	var r refusal
	return errors.As(call.FunctionCallError(), &r)
}
