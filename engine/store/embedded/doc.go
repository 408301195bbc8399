// Package embedded runs the private Postgres that keeps qod's state where no database URL is given.
//
// It finds or fetches the server's programs, makes the cluster, starts the server in a session of its
// own and adopts it in later processes: the server outlives qod, and only Stop ends it. A server is ours
// when its process runs postgres on our data directory and names our cluster id on its command line;
// any other process is neither adopted nor signalled, whatever postmaster.pid says.
//
// Every role, the superuser too, needs its password (scram-sha-256), also on the socket; there is no
// TCP listener. As root, the server and its data belong to an unprivileged user.
//
// What is in the databases is not its matter: it holds no SQL beyond that which makes the cluster.
// It works on Linux, since processes are identified through /proc.
package embedded
