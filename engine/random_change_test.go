package engine_test

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// changed returns another configuration that this one could become.
func (s *sketch) changed() *sketch {
	next := s.clone()
	was := map[int]string{}
	for _, it := range s.items {
		was[it.number] = it.address().String()
	}
	if next.one(6) {
		next.moveModule(was)
	}
	changes := []func(*item){
		next.changeAttr, next.changeAttr, next.changeAttr, next.changeRefs, next.changeRefs, func(it *item) { next.changeName(it) },
		func(it *item) { next.changeName(it) }, next.swap, next.swap, func(it *item) { next.move(it, was, true) },
		func(it *item) { next.move(it, was, true) }, func(it *item) { next.move(it, was, false) }, func(it *item) { next.remove(it, was) },
		func(it *item) { next.remove(it, was) }, next.changeLifecycle, func(it *item) { next.add(it.kind) },
	}
	for range 1 + next.IntN(8) {
		if free := next.movable(); len(free) > 0 {
			changes[next.IntN(len(changes))](free[next.IntN(len(free))])
		}
	}
	if next.one(4) {
		next.changeOutputs()
	}
	return next
}

func (s *sketch) movable() []*item {
	return slices.DeleteFunc(slices.Clone(s.items), func(it *item) bool { return it.held })
}

// changeAttr writes something else, with a password also its version.
func (s *sketch) changeAttr(it *item) {
	i := s.IntN(len(it.kind.Attrs) + len(it.kind.Blocks))
	if i >= len(it.kind.Attrs) {
		s.writeBlock(it, &it.kind.Blocks[i-len(it.kind.Attrs)])
		return
	}
	a := &it.kind.Attrs[i]
	s.write(it, a)
	if a.Secret && !s.one(4) {
		version := cty.Zero
		if v, ok := it.attrs["password_version"]; ok {
			version = v
		}
		if next := version.Add(cty.NumberIntVal(1)); next.LessThan(cty.NumberIntVal(1 << 53)).True() {
			it.attrs["password_version"] = next
		}
	}
}

func (s *sketch) changeRefs(it *item) {
	a := &it.kind.Attrs[s.IntN(len(it.kind.Attrs))]
	if a.Set() || a.Name == "tenant_db" {
		s.point(it, a)
	}
}

func (s *sketch) changeName(it *item) {
	if it.name() != "" {
		s.rename(it)
	}
}

func (s *sketch) swap(it *item) {
	for _, other := range s.movable() {
		if other != it && other.kind == it.kind && other.tenant() == it.tenant() && it.name() != "" {
			it.attrs["name"], other.attrs["name"] = other.attrs["name"], it.attrs["name"]
			return
		}
	}
}

// move gives the item another address; a moved block says so where told is set.
func (s *sketch) move(it *item, was map[int]string, told bool) {
	old := *it
	if was[it.number] == "" || old.address().String() != was[it.number] || s.hasModuleMove() || !s.place(it) {
		*it = old
		return
	}
	if to := it.address(); told && to.String() != was[it.number] {
		s.reserved[was[it.number]] = true
		s.moved = append(s.moved, [2]string{was[it.number], to.String()})
		it.held = true
	}
}

func (s *sketch) hasModuleMove() bool {
	return slices.ContainsFunc(s.moved, func(m [2]string) bool { return m[0] < "n" && len(m[0]) == len("module.x") && m[0][:7] == "module." })
}

// moveModule calls a module by another name.
func (s *sketch) moveModule(was map[int]string) {
	for _, it := range s.items {
		if len(it.modules) == 0 {
			continue
		}
		from, to := it.modules[0].Name, "p"
		if it.modules[0].Keyed {
			to = "q"
		}
		if from == to {
			return
		}
		for _, other := range s.items {
			if len(other.modules) > 0 && other.modules[0].Name == to {
				return
			}
		}
		for _, other := range s.items {
			if len(other.modules) > 0 && other.modules[0].Name == from {
				other.modules = slices.Clone(other.modules)
				other.modules[0].Name = to
				other.held = true
			}
		}
		s.reserved["module."+from] = true
		s.moved = append(s.moved, [2]string{"module." + from, "module." + to})
		return
	}
}

// remove takes the item out, with those that cannot be without it.
func (s *sketch) remove(it *item, was map[int]string) {
	if !s.removable(it) {
		return
	}
	s.items = slices.DeleteFunc(s.items, func(other *item) bool { return other == it })
	at := was[it.number]
	if at == it.address().String() && s.one(3) && !s.hasModuleMove() {
		s.removed[at] = !s.one(4)
		s.reserved[at] = true
	}
	for _, other := range slices.Clone(s.items) {
		for attr, to := range other.refs {
			if !slices.Contains(to, it.number) {
				continue
			}
			if a, _ := other.kind.Attr(attr); !a.Set() {
				s.remove(other, was)
				break
			}
			other.refs[attr] = slices.DeleteFunc(to, func(number int) bool { return number == it.number })
		}
	}
}

// removable reports whether neither the item nor what must go with it is held, or referred to by what is.
func (s *sketch) removable(it *item) bool {
	for _, other := range s.items {
		for attr, to := range other.refs {
			a, _ := other.kind.Attr(attr)
			if slices.Contains(to, it.number) && (other.held || !a.Set() && !s.removable(other)) {
				return false
			}
		}
	}
	return !it.held
}

func (s *sketch) changeLifecycle(it *item) {
	if s.one(3) {
		it.protect = !it.protect
		return
	}
	it.ignore = nil
	for _, name := range it.kind.Names() {
		a, _ := it.kind.Attr(name)
		if s.one(6) && !it.kind.Identifies(name) && (a == nil || !a.Secret && a.Mode == schema.Optional && a.Name != "password_version") {
			it.ignore = append(it.ignore, name)
		}
	}
}
