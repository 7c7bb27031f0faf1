// RUN: not pisa-opt %s -pisa-set-lowering-config=vector-bits=wide 2>&1 | FileCheck %s

// A width that is not a number.

// CHECK: 'wide' value invalid for
module {
}
