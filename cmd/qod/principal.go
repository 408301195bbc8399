package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/schema"
)

// account is a user as commands name it.
type account struct{ id, name, tenant string }

func (u account) String() string {
	if u.tenant == "" {
		return u.name
	}
	return u.tenant + "/" + u.name
}

// accounts lists the users of a snapshot.
func accounts(snap *store.Snapshot) []account {
	var all []account
	for _, o := range snap.Objects {
		if o.Kind.Name != "user" || o.Tombstone {
			continue
		}
		u := account{id: o.ID, name: o.Spec.GetAttr("name").AsString()}
		if tenant := o.Spec.GetAttr("tenant"); !tenant.IsNull() {
			u.tenant = tenant.AsString()
		}
		all = append(all, u)
	}
	return all
}

// accountsByID are the users of a snapshot by their ids.
func accountsByID(snap *store.Snapshot) map[string]account {
	all := map[string]account{}
	for _, u := range accounts(snap) {
		all[u.id] = u
	}
	return all
}

// accountOf returns the user that an argument names, as ana or acme/ana.
func accountOf(snap *store.Snapshot, arg, tenant string) (account, error) {
	tenant, name := splitUser(arg, tenant)
	var found []account
	for _, u := range accounts(snap) {
		if schema.Fold(u.name) == schema.Fold(name) && (tenant == "" || schema.Fold(u.tenant) == schema.Fold(tenant)) {
			found = append(found, u)
		}
	}
	switch len(found) {
	case 0:
		return account{}, fmt.Errorf("there is no user %s", account{name: name, tenant: tenant})
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, u := range found {
		names[i] = u.String()
	}
	slices.Sort(names)
	return account{}, fmt.Errorf("there is more than one user %s: name one of %s", name, strings.Join(names, ", "))
}

// splitUser takes TENANT/NAME apart, unless the tenant is given.
func splitUser(arg, tenant string) (of, name string) {
	if before, after, ok := strings.Cut(arg, "/"); ok && tenant == "" {
		return before, after
	}
	return tenant, arg
}

// userFlag adds the flag that names a user.
func userFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("user", "", "of this `USER`: a name, or TENANT/NAME")
}

// tenantFlag adds the flag that tells users of one name apart.
func tenantFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("tenant", "", tenantUsage)
}

// caused is an event that whoever runs this command causes to a user.
func caused(action, object string, u account, detail string) store.Event {
	who := whoami()
	return store.Event{
		User: who.By, Tenant: u.tenant, Realm: access.RealmHost, From: who.From, Action: action, Object: object, Detail: detail,
	}
}

// inDays writes a span as [access.Span] reads it.
func inDays(d time.Duration) string { return fmt.Sprintf("%dd", d/(24*time.Hour)) }

// plainText replaces what a terminal would obey.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
