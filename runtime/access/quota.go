package access

import (
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// quotaKeys bounds the memory of a quota; whoever comes after that many in one minute has none.
const quotaKeys = 8192

// Quota allows Most of each key in a minute.
type Quota struct {
	Most int

	mu     sync.Mutex
	minute time.Time
	used   map[string]int
}

// Take reports whether there is room for one more of the key.
func (q *Quota) Take(key string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if minute := now.Truncate(time.Minute); q.used == nil || !minute.Equal(q.minute) {
		q.minute, q.used = minute, map[string]int{}
	}
	if _, known := q.used[key]; !known && len(q.used) >= quotaKeys {
		return false
	}
	q.used[key]++
	return q.used[key] <= q.Most
}

// maxName is the longest name that is recorded, in bytes: that of an e-mail address.
const maxName = 254

// Plain reports whether the text has the shape of a name or an e-mail address.
func Plain(name string) bool {
	if len(name) > maxName || !utf8.ValidString(name) {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("._-+@'", r)
	})
}
