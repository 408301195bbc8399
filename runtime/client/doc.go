// Package client talks to the REST API of qod serve, which docs/decisions/012-rest.md describes.
//
// A [Client] makes single requests; a [Batch] joins changes that are made at the same time into one commit. Errors of
// the server are [*Error]. Nothing that this package returns, logs or puts into an error shows a credential or the
// body of a request.
package client
