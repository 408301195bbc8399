package access

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxDays bounds a span that is given in days, so that it is a Duration.
const maxDays = 36_500

// Span reads a span of time as people write it: 30d, 12h or 90s. It is not negative.
func Span(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= maxDays {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a span of time: write it as 30d, 12h or 5m", text)
}
