// RUN: pisa-opt %s -pisa-outline-tasks -verify-diagnostics

// A loop that no function encloses has no place for its task's name and frame.

// expected-error @below {{'scf.forall' op expected a loop inside a func.func to outline, but got one outside}}
scf.forall (%i) in (4) {
}
