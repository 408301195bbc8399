package schema

import "strings"

// Nearest returns the known name that given was probably meant to be: the closest one that is fewer
// than three edits away, else one that starts with given or that given starts with (three letters or
// more). It returns "" when there is none, and when given itself is known.
func Nearest(given string, known []string) string {
	best, least := "", 3
	for _, name := range known {
		if name == given {
			return ""
		}
		if d := edits(given, name); d < least && d < len(given) {
			best, least = name, d
		}
	}
	if best != "" {
		return best
	}
	for _, name := range known {
		if min(len(given), len(name)) >= 3 && (strings.HasPrefix(name, given) || strings.HasPrefix(given, name)) {
			return name
		}
	}
	return ""
}

// DidYouMean returns " Did you mean ...?" with the name that Nearest finds, or "".
func DidYouMean(given string, known []string) string {
	if name := Nearest(given, known); name != "" {
		return " Did you mean \"" + name + "\"?"
	}
	return ""
}

// edits is the Levenshtein distance of a and b.
func edits(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, s := range to {
			cost := diagonal
			if r != s {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
