package api

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// owns reports whether a stack is the caller's as a whole: all of its objects are ones that it sees.
func (c caller) owns(snap *store.Snapshot, stack string) bool {
	return c.System || !slices.ContainsFunc(snap.Objects, func(o store.Object) bool { return o.Stack == stack && !c.visible(&o) })
}

// admit refuses stacks that the caller must leave alone.
func (c *call) admit(stack store.Stack, adopt bool) (*store.Snapshot, *failure) {
	if err := schema.CheckName(stack.Name); err != nil || stack.Name == plan.SystemStack {
		return nil, refuse(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("%q cannot be the name of a stack", shorten(stack.Name))).at("stack")
	}
	snap, err := c.rest.Engine.Store.Snapshot(c.Context())
	switch {
	case err != nil:
		return nil, broken(err)
	case adopt && !c.caller.System:
		return nil, refuse(http.StatusForbidden, "forbidden", "only a system administrator may adopt a stack").at("adopt")
	case !c.caller.owns(snap, stack.Name):
		return nil, refuse(http.StatusForbidden, "forbidden",
			fmt.Sprintf("stack %q has objects outside of your tenant: only a system administrator may work on it", stack.Name)).at("stack")
	}
	return snap, nil
}

const onlySystem = "Only a system administrator may do that"

// confine lists what a configuration asks for beyond the rights of the caller. What the caller does not see stays as it
// is stored.
func (c caller) confine(d *schema.Desired) []plan.Problem {
	if c.System {
		return nil
	}
	var problems []plan.Problem
	for i := range d.Objects {
		o := &d.Objects[i]
		if !c.mayChange(o.Kind, o.Value) {
			problems = append(problems, plan.Problem{
				Address: o.Address, Summary: onlySystem,
				Detail: fmt.Sprintf("%s is not in tenant %q, which you administer, or is the tenant itself.", o.Addr(), c.Tenant),
			})
		}
		hidden := c.hidden(o.Kind)
		for _, path := range hidden {
			if v := within(o.Value, path); !unwritten(v) {
				problems = append(problems, plan.Problem{
					Address: o.Address, Path: path, Summary: onlySystem,
					Detail: "This reaches the host of the nodes. Leave it out: it stays as a system administrator has set it.",
				})
			}
		}
		o.Lifecycle.IgnoreChanges = append(slices.Clone(o.Lifecycle.IgnoreChanges), hidden...)
	}
	return problems
}

// within is the value at a path of attributes, a null where the way there is null.
func within(v cty.Value, path cty.Path) cty.Value {
	for _, step := range path {
		name := step.(cty.GetAttrStep).Name
		if v.IsNull() {
			return cty.NullVal(v.Type().AttributeType(name))
		}
		v = v.GetAttr(name)
	}
	return v
}

func unwritten(v cty.Value) bool { return v.IsNull() || v.Type().IsSetType() && v.LengthInt() == 0 }

// allows refuses a plan with a change that the caller may not make, whoever made the plan.
func (c caller) allows(snap *store.Snapshot, p *plan.Plan) *failure {
	if c.System {
		return nil
	}
	for i := range p.Changes {
		if !c.mayMake(snap, &p.Changes[i]) {
			return refuse(http.StatusForbidden, "forbidden", fmt.Sprintf("%s: only a system administrator may do that", p.Changes[i].Addr))
		}
	}
	return nil
}

func (c caller) mayMake(snap *store.Snapshot, change *plan.Change) bool {
	have := byID(snap, change.ID)
	if have != nil && !c.mayChange(have.Kind, have.Spec) {
		return false
	}
	if change.Spec == cty.NilVal {
		return true
	}
	if !c.mayChange(change.Kind, change.Spec) {
		return false
	}
	for _, path := range c.hidden(change.Kind) {
		is, was := within(change.Spec, path), cty.NilVal
		if have != nil {
			was = within(have.Spec, path)
		}
		if have == nil && !unwritten(is) || have != nil && !is.RawEquals(was) && !(unwritten(is) && unwritten(was)) {
			return false
		}
	}
	return true
}

// store shows what is stored, as the caller may see it.
func (c *call) store() *failure {
	q, f := c.query()
	if f != nil {
		return f
	}
	p := past{}
	var err error
	if q.Get("history") == "true" && c.caller.System {
		p, err = c.past()
		p.applies = append([]store.Apply{}, p.applies...) // known, even if there is none
	} else {
		p.Snapshot, err = c.rest.Engine.Store.Snapshot(c.Context())
	}
	if err != nil {
		return broken(err)
	}
	snap, applies, err := history.Withhold(p.Snapshot, p.applies, c.rest.Engine.Sealer)
	if err != nil {
		return broken(err)
	}
	out, err := store.EncodeSnapshot(c.caller.part(snap), applies)
	if err != nil {
		return broken(err)
	}
	return c.ok(out)
}

// part is what the caller may see of a snapshot.
func (c caller) part(snap *store.Snapshot) *store.Snapshot {
	if c.System {
		return snap
	}
	part := &store.Snapshot{
		Revision: snap.Revision, Stacks: map[string]store.Stack{}, Outputs: map[string][]schema.Output{}, Lost: map[string][]store.Lost{},
	}
	for _, o := range snap.Objects {
		if !c.visible(&o) {
			continue
		}
		o.Spec, o.Applied = c.unhidden(o.Kind, o.Spec), c.unhidden(o.Kind, o.Applied)
		part.Objects = append(part.Objects, o)
		if s, known := snap.Stacks[o.Stack]; known && c.owns(snap, o.Stack) {
			part.Stacks[o.Stack] = s
			part.Outputs[o.Stack], part.Lost[o.Stack] = snap.Outputs[o.Stack], snap.Lost[o.Stack]
		}
	}
	return part
}

// unhidden is a value without what the caller does not see.
func (c caller) unhidden(k *schema.Kind, v cty.Value) cty.Value {
	if v == cty.NilVal {
		return v
	}
	for _, path := range c.hidden(k) {
		v = cleared(v, path)
	}
	return v
}

func cleared(v cty.Value, path cty.Path) cty.Value {
	if len(path) == 0 || v.IsNull() {
		return cty.NullVal(v.Type())
	}
	name := path[0].(cty.GetAttrStep).Name
	values := v.AsValueMap()
	values[name] = cleared(values[name], path[1:])
	return cty.ObjectVal(values)
}
