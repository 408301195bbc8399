package matrix

import "github.com/qod-io/qod/test/samples"

type sample = samples.Sample

// base is the stack whose objects those of the matrix refer to.
const base = samples.Base
