package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// presence is what a running serve says of itself to other commands on this host.
type presence struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // of the process, in clock ticks since boot: tells a recycled pid
	Flight  string `json:"flight"`
	HTTP    string `json:"http"`

	file string
}

// announce writes the presence of this process.
func (p *paths) announce(flight, web net.Addr) (*presence, error) {
	s := &presence{
		PID: os.Getpid(), Started: startTicks(os.Getpid()), Flight: reachable(flight), HTTP: reachable(web),
		file: p.in("serves", strconv.Itoa(os.Getpid())+".json"),
	}
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return nil, fmt.Errorf("announce serve: %w", err)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("announce serve: %w", err)
	}
	if err := os.WriteFile(s.file+".new", raw, 0o600); err != nil {
		return nil, fmt.Errorf("announce serve: %w", err)
	}
	if err := os.Rename(s.file+".new", s.file); err != nil {
		return nil, fmt.Errorf("announce serve: %w", err)
	}
	return s, nil
}

// withdraw takes the presence away. One that is left behind is recognised by its process being gone.
func (s *presence) withdraw() { _ = os.Remove(s.file) }

// serves lists the serves of this state directory that are running.
func (p *paths) serves() []presence {
	files, err := filepath.Glob(p.in("serves", "*.json"))
	if err != nil {
		return nil // the pattern is good
	}
	var alive []presence
	for _, file := range files {
		raw, err := os.ReadFile(file)
		var s presence
		if err != nil || json.Unmarshal(raw, &s) != nil {
			continue
		}
		if s.Started != "" && startTicks(s.PID) == s.Started {
			s.file = file
			alive = append(alive, s)
		}
	}
	return alive
}

// reachable turns a wildcard address into one that a client on this host can dial.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// startTicks returns when a process started, or "" when there is none.
func startTicks(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the program's name in parentheses and may hold anything.
	_, rest, ok := strings.Cut(string(raw[max(0, strings.LastIndexByte(string(raw), ')')):]), ") ")
	fields := strings.Fields(rest)
	const state, starttime = 3, 22 // numbered as in proc(5)
	if !ok || len(fields) <= starttime-state || fields[0] == "Z" {
		return ""
	}
	return fields[starttime-state]
}
