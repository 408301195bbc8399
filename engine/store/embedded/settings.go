package embedded

import "strconv"

// settings are given on the command line at each start, so that a newer qod's hold for older clusters.
// The log never shows a statement or a value of one: either may hold a secret.
func (c *cluster) settings(id string) []string {
	onOff := map[bool]string{true: "on", false: "off"}
	pairs := []string{
		"cluster_name=" + clusterName(id),
		"listen_addresses=",
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=" + c.socket,
		"unix_socket_permissions=0777", // who may connect, the passwords decide
		"password_encryption=scram-sha-256",
		"max_connections=200",
		"superuser_reserved_connections=20", // lakes never keep qod itself out
		"client_connection_check_interval=5s",
		"shared_buffers=128MB",
		"fsync=" + onOff[!c.NoSync],
		"lc_messages=C",
		"log_timezone=UTC",
		"logging_collector=off",
		"log_destination=stderr",
		"log_line_prefix=%m [%p] %d ",
		"log_statement=none",
		"log_duration=off",
		"log_min_duration_statement=-1",
		"log_min_error_statement=panic",
		"log_error_verbosity=terse", // no DETAIL, which quotes values
		"log_parameter_max_length=0",
		"log_parameter_max_length_on_error=0",
	}
	var args []string
	for _, pair := range pairs {
		args = append(args, "-c", pair)
	}
	return args
}
