//go:build race

package postgres_test

// slack is how many times slower than usual this build is.
const slack = 10
