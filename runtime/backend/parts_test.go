package backend

import (
	"reflect"
	"strings"
	"testing"
)

// Whatever changes the hash of a spec must have a name for people.
func TestPartsCoverTheHash(t *testing.T) {
	var each func(v reflect.Value, path string, spec *Spec)
	each = func(v reflect.Value, path string, spec *Spec) {
		for i := range v.NumField() {
			f, name := v.Field(i), path+v.Type().Field(i).Name
			was := spec.Hash()
			parts := spec.Parts()
			switch f.Kind() {
			case reflect.Struct:
				each(f, name+".", spec)
				continue
			case reflect.String:
				f.SetString("other")
			case reflect.Int, reflect.Int64:
				f.SetInt(3 << 20)
			case reflect.Slice:
				f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			default:
				t.Fatalf("%s: no other value of a %s is known here", name, f.Kind())
			}
			if hashed, named := spec.Hash() != was, !reflect.DeepEqual(parts, spec.Parts()); hashed != named {
				t.Errorf("%s changes the hash: %t, the parts: %t", name, hashed, named)
			}
		}
	}
	var spec Spec
	each(reflect.ValueOf(&spec).Elem(), "", &spec)
}

func TestUntil(t *testing.T) {
	was := Spec{MemoryBytes: 1 << 30, Threads: 1, Lake: Lake{PasswordPrint: "print-1"}}
	for name, tt := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"memory":    {func(s *Spec) { s.MemoryBytes = 1536 << 20 }, `memory: "1GiB" -> "1536MiB"`},
		"two":       {func(s *Spec) { s.MemoryBytes, s.Threads = 1000, 2 }, `memory: "1GiB" -> "1000B", threads: "1" -> "2"`},
		"password":  {func(s *Spec) { s.Lake.PasswordPrint = "print-2" }, "password for Postgres"},
		"sensitive": {func(s *Spec) { s.Threads, s.Sensitive = 2, []string{"threads", "display_name"} }, "threads"},
		"restart":   {func(s *Spec) { s.Restart = "2026-01-31T08:00:00Z" }, `restart: "" -> "2026-01-31T08:00:00Z"`},
		"nothing":   {func(*Spec) {}, "another version of qod started it, in another way"},
	} {
		is := was
		tt.change(&is)
		if got := was.Parts().Until(is.Parts()); got != tt.want || strings.Contains(got, "print-") {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	secret := was
	secret.Sensitive, secret.MemoryBytes = []string{"memory"}, 2<<30
	if got := secret.Parts().Until(was.Parts()); got != "memory" {
		t.Errorf("of a part that was sensitive: %s", got)
	}
	if got := (Parts)(nil).Until(was.Parts()); got != "what it was started with is not recorded here" {
		t.Errorf("of nothing recorded: %s", got)
	}
	newer := was.Parts()
	newer["what only a newer qod knows"] = Part{Value: "x"}
	if got := was.Parts().Until(newer); got != `what only a newer qod knows: "" -> "x"` {
		t.Errorf("of a part that is new: %s", got)
	}
}
