package config

// Stack returns the name in the qod block, or "" where none could be read. It is known before anything is
// evaluated, also where something else is wrong.
func (c *Config) Stack() string { return c.stack }
