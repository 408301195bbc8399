package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Identifies reports whether the attribute is part of the kind's key.
func (k *Kind) Identifies(attr string) bool {
	return slices.ContainsFunc(k.Key, func(part string) bool {
		return slices.Contains(strings.Split(part, "|"), attr)
	})
}

// KeyForm says how the path of an object's [Addr] is written: TENANT/NAME.
func (k *Kind) KeyForm() string {
	form := keyForm(k.Key)
	if short := slices.DeleteFunc(slices.Clone(k.Key), k.mayLack); len(short) < len(k.Key) {
		form += " or " + keyForm(short)
	}
	return form
}

func keyForm(key []string) string {
	parts := make([]string, len(key))
	for i, part := range key {
		names := strings.Split(part, "|")
		parts[i] = strings.ToUpper(part)
		if len(names) == 1 {
			continue
		}
		parts[i] = names[0] + ":NAME"
		if others := names[1:]; len(others) > 0 {
			parts[i] += " (or " + strings.Join(others, ":NAME, ") + ":NAME)"
		}
	}
	return strings.Join(parts, "/")
}

// mayLack reports whether objects may be without that part of the key, as a system user is without
// tenant.
func (k *Kind) mayLack(part string) bool {
	a, ok := k.Attr(part)
	return ok && a.Mode == Optional
}

// ParseKey reads the path of the address of an object of this kind: acme/bi.
func (k *Kind) ParseKey(path string) (Addr, error) {
	escapes := strings.NewReplacer("%25", "", "%2F", "", "%3A", "")
	parts := strings.Split(path, "/")
	key := k.Key
	if len(parts) < len(key) {
		key = slices.DeleteFunc(slices.Clone(key), k.mayLack)
	}
	if len(parts) != len(key) || slices.Contains(parts, "") {
		return Addr{}, fmt.Errorf("%q does not name a %s: want %s", path, k.Name, k.KeyForm())
	}
	for i, part := range parts {
		prefix := ""
		if names := strings.Split(key[i], "|"); len(names) > 1 {
			name, rest, ok := strings.Cut(part, ":")
			if !ok || rest == "" || !slices.Contains(names, name) {
				return Addr{}, fmt.Errorf("%q does not name a %s: want %s", path, k.Name, k.KeyForm())
			}
			prefix, part = name+":", rest
		}
		if strings.ContainsAny(escapes.Replace(part), "%:") {
			return Addr{}, fmt.Errorf("%q does not name a %s: inside a name, / is written %%2F, : is written %%3A and %% is written %%25",
				path, k.Name)
		}
		parts[i] = prefix + escaper.Replace(Fold(unescaper.Replace(part)))
	}
	return Addr{Kind: k.Name, Path: strings.Join(parts, "/")}, nil
}

// KeyValues returns the attributes that the address of an object of this kind gives a value, by name: the inverse of
// [Kind.Addr].
func (k *Kind) KeyValues(a Addr) map[string]string {
	parts := strings.Split(a.Path, "/")
	key := k.Key
	if len(parts) < len(key) {
		key = slices.DeleteFunc(slices.Clone(key), k.mayLack)
	}
	values := make(map[string]string, len(parts))
	for i, name := range key[:min(len(key), len(parts))] {
		text := parts[i]
		if strings.Contains(name, "|") {
			name, text, _ = strings.Cut(text, ":")
		}
		values[name] = unescaper.Replace(text)
	}
	return values
}
