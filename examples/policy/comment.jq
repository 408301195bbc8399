# A comment for a pull request, in Markdown, of what `qod plan --json` prints: jq -rf comment.jq
"\(.summary.add) to add, \(.summary.change) to change, \(.summary.destroy) to destroy",
"",
"| object | action | changes |",
"|---|---|---|",
(.resource_changes[] | "| `\(.address)` | \(.change.actions | join(", ")) | \(.effects | to_entries | map("\(.key) (\(.value))") | join(", ")) |")
