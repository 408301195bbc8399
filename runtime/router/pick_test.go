package router

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

func member(id string, role backend.Role, phase backend.Phase) backend.Member {
	return backend.Member{Node: backend.Node{ID: id, Role: role}, Incarnation: "i-" + id, Phase: phase}
}

func idle(string) int { return 0 }

func TestPick(t *testing.T) {
	r, w, d := member("r", backend.Read, backend.Serving), member("w", backend.Write, backend.Serving), member("d", backend.Dual, backend.Serving)
	starting := member("s", backend.Dual, backend.Starting)
	draining := member("x", backend.Dual, backend.Draining)
	away := member("q", backend.Dual, backend.Quarantined)
	gone := member("g", backend.Dual, backend.Gone)
	pin := func(m backend.Member) *Pin { return &Pin{m.ID, m.Incarnation} }
	tests := map[string]struct {
		members []backend.Member
		request Request
		want    string
		err     error
		text    string
	}{
		"read":                     {members: []backend.Member{w, r}, request: Request{Class: wire.Read}, want: "r"},
		"write":                    {members: []backend.Member{w, r}, request: Request{Class: wire.Write}, want: "w"},
		"ddl":                      {members: []backend.Member{w, r}, request: Request{Class: wire.DDL}, want: "w"},
		"transaction":              {members: []backend.Member{r, d}, request: Request{Class: wire.Transaction}, want: "d"},
		"metadata":                 {members: []backend.Member{w, r}, request: Request{Class: wire.Metadata}, want: "r"},
		"metadata where it must":   {members: []backend.Member{w}, request: Request{Class: wire.Metadata}, want: "w"},
		"setting where it must":    {members: []backend.Member{r}, request: Request{Class: wire.Setting}, want: "r"},
		"only serving":             {members: []backend.Member{starting, draining, away, gone, d}, want: "d"},
		"none":                     {request: Request{Pool: "acme/bi"}, err: ErrNoNode, text: "pool acme/bi: 0 of 0 nodes serving"},
		"none serving":             {members: []backend.Member{starting, away}, request: Request{Pool: "acme/bi"}, err: ErrNoNode, text: "pool acme/bi: 0 of 2 nodes serving"},
		"none for a write":         {members: []backend.Member{r}, request: Request{Pool: "acme/bi", Class: wire.Write}, err: ErrNoNode, text: "pool acme/bi: 1 of 1 nodes serving, none that takes a write now"},
		"excluded":                 {members: []backend.Member{r, d}, request: Request{Class: wire.Read, Exclude: []string{"r"}}, want: "d"},
		"pinned":                   {members: []backend.Member{r, d}, request: Request{Pin: pin(r)}, want: "r"},
		"pinned to a draining one": {members: []backend.Member{d, draining}, request: Request{Pin: pin(draining)}, want: "x"},
		"pinned to one away":       {members: []backend.Member{d, away}, request: Request{Pin: pin(away)}, err: ErrPinAway},
		"pinned to one gone":       {members: []backend.Member{d, gone}, request: Request{Pin: pin(gone)}, err: ErrPinLost},
		"pinned to none":           {members: []backend.Member{d}, request: Request{Pin: pin(r)}, err: ErrPinLost},
		"pinned to its successor":  {members: []backend.Member{r}, request: Request{Pin: &Pin{"r", "earlier"}}, err: ErrPinLost},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Pick(tc.members, tc.request, idle)
			if !errors.Is(err, tc.err) || got.ID != tc.want {
				t.Fatalf("Pick = %q, %v", got.ID, err)
			}
			if tc.text != "" && err.Error() != tc.text {
				t.Errorf("text %q, want %q", err, tc.text)
			}
		})
	}
}

// What holds for every fleet, load and request.
func TestPickProperties(t *testing.T) {
	roles := []backend.Role{backend.Read, backend.Write, backend.Dual}
	phases := []backend.Phase{backend.Serving, backend.Serving, backend.Starting, backend.Draining, backend.Quarantined, backend.Gone}
	classes := []wire.Class{wire.Read, wire.Write, wire.DDL, wire.Transaction}
	for seed := range uint64(5000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		members := make([]backend.Member, rnd.IntN(24))
		loads := map[string]int{}
		for i := range members {
			members[i] = member(fmt.Sprint("n", i), roles[rnd.IntN(3)], phases[rnd.IntN(len(phases))])
			loads[members[i].ID] = rnd.IntN(5)
		}
		r := Request{Class: classes[rnd.IntN(len(classes))], Fingerprint: rnd.Uint64N(2)}
		if len(members) > 0 && rnd.IntN(2) == 0 {
			r.Exclude = []string{members[rnd.IntN(len(members))].ID}
		}
		able := slices.DeleteFunc(slices.Clone(members), func(m backend.Member) bool {
			fits := m.Role == backend.Dual || (m.Role == backend.Read) == (r.Class == wire.Read)
			return m.Phase != backend.Serving || !fits || slices.Contains(r.Exclude, m.ID)
		})
		before := slices.Clone(members)
		got, err := Pick(members, r, func(id string) int { return loads[id] })
		if !cmp.Equal(before, members) {
			t.Fatalf("seed %d: the members were changed", seed)
		}
		if (err != nil) != (len(able) == 0) {
			t.Fatalf("seed %d: err = %v with %d able nodes", seed, err, len(able))
		}
		if err != nil {
			continue
		}
		if !slices.ContainsFunc(able, func(m backend.Member) bool { return m.ID == got.ID }) {
			t.Fatalf("seed %d: %s is not able", seed, got.ID)
		}
		if len(able) > scanLimit {
			continue
		}
		for _, m := range able {
			if loads[m.ID] < loads[got.ID] {
				t.Fatalf("seed %d: %s has load %d, %s %d", seed, got.ID, loads[got.ID], m.ID, loads[m.ID])
			}
		}
	}
}

func TestTiesAreShared(t *testing.T) {
	var members []backend.Member
	for i := range 4 {
		members = append(members, member(fmt.Sprint("n", i), backend.Dual, backend.Serving))
	}
	count := map[string]int{}
	for range 4000 {
		m, err := Pick(members, Request{}, idle)
		if err != nil {
			t.Fatal(err)
		}
		count[m.ID]++
	}
	for id, n := range count {
		if n < 800 || n > 1200 {
			t.Errorf("%s got %d of 4000", id, n)
		}
	}
}

// Of many nodes the better of two is taken: the most loaded one never, and load evens out.
func TestTwoChoices(t *testing.T) {
	var members []backend.Member
	for i := range 40 {
		members = append(members, member(fmt.Sprint("n", i), backend.Dual, backend.Serving))
	}
	loads := map[string]int{}
	for range 4000 {
		m, err := Pick(members, Request{}, func(id string) int { return loads[id] })
		if err != nil {
			t.Fatal(err)
		}
		loads[m.ID]++
	}
	for id, n := range loads {
		if n < 90 || n > 110 {
			t.Errorf("%s got %d, with an even share of 100", id, n)
		}
	}
}

// A fingerprint keeps its node among equals, spreads, moves only when its node goes, and yields to load.
func TestAffinity(t *testing.T) {
	var members []backend.Member
	for i := range 8 {
		members = append(members, member(fmt.Sprintf("%08x-0000-4000-8000-00000000000%d", i, i), backend.Dual, backend.Serving))
	}
	pick := func(members []backend.Member, f uint64, load func(string) int) string {
		t.Helper()
		m, err := Pick(members, Request{Class: wire.Read, Fingerprint: f}, load)
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	count := map[string]int{}
	for f := uint64(1); f <= 800; f++ {
		home := pick(members, f, idle)
		count[home]++
		if again := pick(members, f, idle); again != home {
			t.Fatalf("fingerprint %d went to %s and %s", f, home, again)
		}
		fewer := slices.DeleteFunc(slices.Clone(members), func(m backend.Member) bool { return m.ID == members[0].ID })
		if moved := pick(fewer, f, idle); moved != home && home != members[0].ID {
			t.Fatalf("fingerprint %d moved from %s to %s when another node went", f, home, moved)
		}
		busy := func(id string) int {
			if id == home {
				return 1
			}
			return 0
		}
		if pick(members, f, busy) == home {
			t.Fatalf("fingerprint %d stayed on a loaded node", f)
		}
	}
	for id, n := range count {
		if n < 60 || n > 140 {
			t.Errorf("%s is home of %d of 800", id, n)
		}
	}
}
