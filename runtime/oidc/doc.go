// Package oidc checks tokens of OpenID Connect issuers: who signed them, for whom and until when. A [Verifier]
// fetches the issuer's keys when it first needs them, again when a token names one that it does not have, and
// goes on with those it has while the issuer is away. Whom a token lets in is decided by package access.
package oidc
