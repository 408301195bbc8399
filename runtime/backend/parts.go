package backend

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Parts is what a Spec's hash covers, by names that people know, which are those of attributes where a part
// is one: what differs between two specs can be said long after one of them was started.
type Parts map[string]Part

// Part is one of them as text.
type Part struct {
	Value     string `json:"value"`
	Sensitive bool   `json:"sensitive,omitempty"` // the value is not for people
}

// Parts takes the Spec apart.
func (s Spec) Parts() Parts {
	l := s.Lake
	parts := Parts{
		"pool":                  {Value: s.PoolID},
		"role":                  {Value: string(s.Role)},
		"memory":                {Value: size(s.MemoryBytes)},
		"threads":               {Value: strconv.Itoa(s.Threads)},
		"extension directory":   {Value: s.ExtensionDir},
		"name of the database":  {Value: l.Name},
		"id of the database":    {Value: l.DatabaseID},
		"default_schema":        {Value: l.DefaultSchema},
		"data_path":             {Value: l.DataPath},
		"address of Postgres":   {Value: l.Host + " port " + strconv.Itoa(l.Port)},
		"Postgres database":     {Value: l.Database},
		"Postgres role":         {Value: l.User},
		"password for Postgres": {Value: l.PasswordPrint, Sensitive: true},
	}
	if s.Restart != "" {
		parts["restart"] = Part{Value: s.Restart}
	}
	for _, name := range s.Sensitive {
		if part, ok := parts[name]; ok {
			part.Sensitive = true
			parts[name] = part
		}
	}
	return parts
}

// size writes bytes in the largest unit that keeps them exact.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; n != 0 && n%1024 == 0 && i < len(units)-1; i++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + units[i]
}

// Until says what differs between the parts a node was started with and those that are wanted of it.
func (p Parts) Until(wanted Parts) string {
	if len(p) == 0 {
		return "what it was started with is not recorded here"
	}
	names := maps.Clone(p)
	maps.Copy(names, wanted)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := p[name], wanted[name]
		switch {
		case was.Value == is.Value:
		case was.Sensitive || is.Sensitive:
			out = append(out, name)
		default:
			out = append(out, fmt.Sprintf("%s: %q -> %q", name, was.Value, is.Value))
		}
	}
	if len(out) == 0 {
		return "another version of qod started it, in another way"
	}
	return strings.Join(out, ", ")
}
