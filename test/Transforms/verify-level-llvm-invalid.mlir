// RUN: pisa-opt %s -pisa-verify-level=level=llvm -verify-diagnostics -split-input-file

// What does not belong to level llvm: all that is not the LLVM dialect.

// a function
// expected-error @+2 {{'func.return' op does not belong to level 'llvm'}}
func.func @f() {
  return
}

// -----

llvm.func @f() {
  // arithmetic
  // expected-error @below {{'arith.constant' op does not belong to level 'llvm'}}
  %0 = arith.constant 1 : i64
  llvm.return
}

// -----

llvm.func @f(%x: i64) {
  // a cast that is left
  // expected-error @below {{'builtin.unrealized_conversion_cast' op does not belong to level 'llvm'}}
  %0 = builtin.unrealized_conversion_cast %x : i64 to index
  llvm.return
}
