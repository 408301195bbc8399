package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// item is one object of a sketch. It keeps its number when it is renamed, moved or changed.
type item struct {
	number  int
	kind    *schema.Kind
	modules []schema.Step // none, the one module it is in, or one with for_each inside of one without
	at      schema.Step
	attrs   map[string]cty.Value // what is written, but references
	refs    map[string][]int     // references that are not literal, by attribute
	protect bool
	ignore  []string
	hidden  map[string]bool // attributes that come from a sensitive variable
	held    bool            // changes leave it alone
}

// sketch is a configuration before it is written down. What a plan must do follows from two of them.
type sketch struct {
	*rand.Rand
	items    []*item
	numbers  int
	outputs  map[string]string // expressions
	moved    [][2]string
	removed  map[string]bool // address → destroy
	imports  map[string]string
	reserved map[string]bool // addresses and modules that were left by a move
	// outward is whether root objects refer to those of modules; else it is the other way round.
	outward bool
	// secretive is whether some attributes and outputs come from sensitive variables.
	secretive bool
	secrets   int
	hush      cty.Value // of the output that is sensitive
}

func newSketch(r *rand.Rand) *sketch {
	s := &sketch{Rand: r, outputs: map[string]string{}, removed: map[string]bool{}, imports: map[string]string{}, reserved: map[string]bool{}}
	s.outward, s.secretive = s.one(2), s.one(3)
	for _, k := range schema.Kinds() {
		for range 1 + s.IntN(4) {
			s.add(k)
		}
	}
	s.changeOutputs()
	return s
}

// one is true once in n times.
func (s *sketch) one(n int) bool { return s.IntN(n) == 0 }

// clone returns a sketch whose items can be changed. What was said of the past is over.
func (s *sketch) clone() *sketch {
	c := *s
	c.items = nil
	for _, it := range s.items {
		copied := *it
		copied.attrs, copied.refs, copied.hidden = maps.Clone(it.attrs), map[string][]int{}, maps.Clone(it.hidden)
		for attr, to := range it.refs {
			copied.refs[attr] = slices.Clone(to)
		}
		c.items = append(c.items, &copied)
	}
	c.outputs = maps.Clone(s.outputs)
	c.moved, c.removed, c.imports, c.reserved = nil, map[string]bool{}, map[string]string{}, map[string]bool{}
	return &c
}

func (s *sketch) item(number int) *item {
	for _, it := range s.items {
		if it.number == number {
			return it
		}
	}
	return nil
}

func (it *item) address() schema.Address {
	return schema.Address{Modules: it.modules, Kind: it.kind.Name, Step: it.at}
}

func (it *item) inKeyed() bool { return len(it.modules) > 0 && it.modules[len(it.modules)-1].Keyed }

func (it *item) tenant() int {
	if to := it.refs["tenant"]; len(to) == 1 {
		return to[0]
	}
	return 0
}

// name is the innermost part of the key, or "".
func (it *item) name() string {
	if v, ok := it.attrs["name"]; ok {
		return v.AsString()
	}
	return ""
}

// key tells an item from all others of its kind.
func (it *item) key() string {
	key := fmt.Sprint(it.kind.Name, " ", it.tenant(), " ", schema.Fold(it.name()))
	if it.name() == "" {
		key += fmt.Sprint(it.refs["pool"], it.refs["user"], it.refs["group"], it.refs["role"])
	}
	return key
}

func (s *sketch) taken(key string) bool {
	return slices.ContainsFunc(s.items, func(it *item) bool { return it.key() == key })
}

// add makes an object of the kind, if there is a place and a name for it.
func (s *sketch) add(k *schema.Kind) *item {
	s.numbers++
	it := &item{number: s.numbers, kind: k, attrs: map[string]cty.Value{}, refs: map[string][]int{}, hidden: map[string]bool{}}
	if !s.place(it) || !s.refer(it) {
		return nil
	}
	for i := range k.Attrs {
		s.write(it, &k.Attrs[i])
	}
	for i := range k.Blocks {
		s.writeBlock(it, &k.Blocks[i])
	}
	if _, named := k.Attr("name"); named && !s.rename(it) || !named && s.taken(it.key()) {
		return nil
	}
	it.protect = s.one(25)
	s.items = append(s.items, it)
	return it
}

// place chooses an address that is free.
func (s *sketch) place(it *item) bool {
	labels := []string{"a", "b-1", "c_2", "d", "e", "naïve", "all"}
	keys := []string{"a", "b.c", "d e", `q"q`, "${x}", "%{y}", "日本", "a/b:c%", "", `back\slash`, "tab\t", "k"}
	for range 20 {
		it.modules, it.at = nil, schema.Step{Name: labels[s.IntN(len(labels))]}
		switch s.IntN(7) {
		case 0:
			it.modules = []schema.Step{{Name: []string{"m", "n", "o"}[s.IntN(3)]}}
		case 1:
			it.modules = []schema.Step{{Name: []string{"x", "y", "z"}[s.IntN(3)], Key: []string{"eu", "u s", "a.b"}[s.IntN(3)], Keyed: true}}
		case 2:
			it.modules = []schema.Step{
				{Name: []string{"m", "n", "o"}[s.IntN(3)]},
				{Name: []string{"u", "v"}[s.IntN(2)], Key: []string{"eu", "a.b", "${x}"}[s.IntN(3)], Keyed: true},
			}
		}
		if it.inKeyed() || s.one(3) {
			it.at = schema.Step{Name: "every" + string(rune('0'+s.IntN(2))), Key: keys[s.IntN(len(keys))], Keyed: true}
		}
		if s.free(it) {
			return true
		}
	}
	return false
}

func (s *sketch) free(it *item) bool {
	at := it.address().String()
	if s.reserved[at] || len(it.modules) > 0 && s.reserved["module."+it.modules[0].Name] {
		return false
	}
	return !slices.ContainsFunc(s.items, func(other *item) bool { return other != it && other.address().String() == at })
}

// of lists the items of a kind that may stand in an attribute of it.
func (s *sketch) of(kind string, it *item) []int {
	var list []int
	for _, other := range s.items {
		if other.kind.Name == kind && (kind == "tenant" || other.tenant() == it.tenant()) {
			list = append(list, other.number)
		}
	}
	return list
}

// refer chooses what the item refers to, and reports whether all it needs is there.
func (s *sketch) refer(it *item) bool {
	if it.kind.Name == "user" && s.one(8) {
		it.attrs["system"] = cty.True
		return true
	}
	grantee := ""
	if it.kind.Name == "pool_grant" {
		grantee = []string{"user", "group", "role"}[s.IntN(3)]
	}
	for i := range it.kind.Attrs {
		a := &it.kind.Attrs[i]
		switch {
		case a.Ref == "" || a.Mode == schema.Optional && !a.Set() && a.Name != grantee && a.Name != "tenant":
		case len(a.Literal) > 0 && !a.Set() && s.one(4):
			it.attrs[a.Name] = cty.StringVal(a.Literal[s.IntN(len(a.Literal))])
		case !s.point(it, a):
			return false
		}
	}
	return true
}

func (s *sketch) point(it *item, a *schema.Attr) bool {
	candidates := s.of(a.Ref, it)
	if !a.Set() {
		if len(candidates) > 0 {
			it.refs[a.Name] = []int{candidates[s.IntN(len(candidates))]}
		}
		return len(candidates) > 0
	}
	delete(it.refs, a.Name)
	delete(it.attrs, a.Name)
	for _, number := range candidates {
		if s.one(2) {
			it.refs[a.Name] = append(it.refs[a.Name], number)
		}
	}
	switch {
	case len(a.Literal) > 0 && s.one(3):
		it.attrs[a.Name] = cty.SetVal([]cty.Value{cty.StringVal(a.Literal[s.IntN(len(a.Literal))])})
	case len(it.refs[a.Name]) == 0 && s.one(2):
		it.attrs[a.Name] = cty.SetValEmpty(cty.String)
	}
	return true
}

// texts are what attributes may be; those that a check refuses are not taken for it.
func texts() []string {
	return []string{
		"a", "b", "c", "d", "e-1", "f_2", "g", "h", "Ana@corp.com", "ana@corp.com", "o'neil+x@corp.com", "a b@corp.com", "naïve@corp.com",
		`"q"\%2F@corp.com`, "${x}%{y}@corp.com", "a.b@x.org", "main", "local", "ducklake", "1GiB", "512MiB", "2048MB", "30m", "90s", "0s", "1h",
		"", " ", "two\nlines", "tab\t", "$${x}", "%", "ends with $", "日本語", "\u200b", "#//", "null", "true", "1e3", "<<EOT\nx\nEOT\n", "\x01",
		"swordfish", "open sesame", "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$aGFzaA", "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$b3RoZXI", "*",
		"https://login.corp.com/${x}/é", "http://127.0.0.1:5556/dex",
	}
}

// write gives an attribute that is no reference a value, or none.
func (s *sketch) write(it *item, a *schema.Attr) {
	delete(it.hidden, a.Name)
	switch {
	case a.Ref != "" || a.Name == "name" || a.Name == "system":
	case a.Name == it.kind.Holds:
		it.attrs[a.Name] = cty.True
	case a.Mode == schema.Optional && s.one(2):
		delete(it.attrs, a.Name)
	case s.mayHide(a) && s.one(2):
		it.attrs[a.Name], it.hidden[a.Name] = s.secret(), true
	default:
		it.attrs[a.Name] = s.value(a)
	}
	_, password := it.attrs["password"]
	if _, verifier := it.attrs["password_verifier"]; password && verifier {
		delete(it.attrs, "password")
	}
}

// secretWords are in each value that comes from a sensitive variable, and nowhere else.
const secretWords = "hush-hush"

func (s *sketch) secret() cty.Value {
	s.secrets++
	return cty.StringVal(fmt.Sprint(secretWords, s.secrets))
}

// mayHide reports whether an attribute takes such a value without keeping it as a secret.
func (s *sketch) mayHide(a *schema.Attr) bool {
	return s.secretive && a.Type == cty.String && !a.Secret && len(a.OneOf) == 0 && (a.Check == nil || a.Check(cty.StringVal(secretWords+"1")) == nil)
}

// value is one that the attribute takes.
func (s *sketch) value(a *schema.Attr) cty.Value {
	for range 10_000 {
		if v := s.any(a); a.Check == nil || a.Check(v) == nil {
			return v
		}
	}
	panic("no value of texts and numbers fits " + a.Name)
}

func (s *sketch) any(a *schema.Attr) cty.Value {
	candidates := texts()
	if len(a.OneOf) > 0 {
		candidates = a.OneOf
	}
	text := func() cty.Value { return cty.StringVal(candidates[s.IntN(len(candidates))]) }
	switch {
	case a.Set() && s.one(2):
		return cty.SetVal([]cty.Value{text(), text()})
	case a.Set():
		return cty.SetVal([]cty.Value{text()})
	case a.Type == cty.Bool:
		return cty.BoolVal(s.one(2))
	case a.Type == cty.Number:
		return cty.NumberIntVal([]int64{0, 1, 2, 7, 64, 1 << 53, 1<<53 - 1}[s.IntN(7)])
	}
	return text()
}

// writeBlock writes no block, or some, with values that the kind takes.
func (s *sketch) writeBlock(it *item, b *schema.Block) {
	delete(it.attrs, b.Name)
	n := s.IntN(3)
	if n == 0 {
		return
	}
	var list []cty.Value
	for len(list) < n {
		attrs := map[string]cty.Value{}
		for i := range b.Attrs {
			a := &b.Attrs[i]
			attrs[a.Name] = cty.NullVal(a.Type)
			if a.Mode == schema.Required || s.one(2) {
				attrs[a.Name] = s.value(a)
			}
		}
		v := cty.ObjectVal(attrs)
		whole := it.kind.Empty().AsValueMap()
		whole[b.Name] = v
		if !b.Single {
			whole[b.Name] = cty.SetVal([]cty.Value{v})
		}
		_, problems := it.kind.Complete(cty.ObjectVal(whole))
		if !slices.ContainsFunc(problems, func(p schema.Problem) bool {
			return len(p.Path) > 0 && p.Path[0].(cty.GetAttrStep).Name == b.Name
		}) {
			list = append(list, v)
		}
	}
	it.attrs[b.Name] = list[0]
	if !b.Single {
		it.attrs[b.Name] = cty.SetVal(list)
	}
}

// rename gives the item another name, if there is one.
func (s *sketch) rename(it *item) bool {
	a, _ := it.kind.Attr("name")
	old := it.attrs["name"]
	candidates := texts()[:16]
	for _, i := range s.Perm(len(candidates)) {
		name := cty.StringVal(candidates[i])
		if a.Check(name) != nil || strings.Contains(candidates[i], "e-1") && it.kind.Name == "tenant_db" {
			continue
		}
		it.attrs["name"] = name
		key := it.key()
		if !slices.ContainsFunc(s.items, func(other *item) bool { return other != it && other.key() == key }) {
			return true
		}
	}
	it.attrs["name"] = old
	return false
}

func (s *sketch) changeOutputs() {
	values := []string{
		`12345678901234567890123`, `"text"`, `null`, `[]`, `{}`, `[1, "a", null]`, `{ "a b" = 9007199254740993 }`, `0.1`, `1e30`, `""`, `toset(["a"])`,
	}
	for _, name := range []string{"a", "b", "c"} {
		delete(s.outputs, name)
		if s.one(2) {
			s.outputs[name] = values[s.IntN(len(values))]
		}
	}
	if s.secretive {
		s.hush = s.secret()
	}
}
