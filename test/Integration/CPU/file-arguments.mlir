// Arguments of every type that the runner passes, and the results that are
// arguments: untouched, in the order of the results.

// RUN: rm -rf %t && mkdir -p %t
// RUN: pisa-runner %s --output-dir=%t --entry=types \
// RUN:   --inputs=arg0=1.5,arg1=-7,arg2=-8,arg3=0.25,arg4=-3,arg5=7,arg6=2.5
// RUN: ls %t | FileCheck %s --check-prefix=FILES
// RUN: cat %t/result0.npy | FileCheck %s --check-prefix=F64
// RUN: cat %t/result1.npy | FileCheck %s --check-prefix=I32
// RUN: cat %t/result2.npy | FileCheck %s --check-prefix=BF16
// RUN: %python -c "import struct, sys; \
// RUN:   tail = lambda i, n: open(sys.argv[1] + '/result%%d.npy' %% i, 'rb').read()[-n:]; \
// RUN:   print(struct.unpack('<2d', tail(0, 16)), struct.unpack('<2i', tail(1, 8)), \
// RUN:         tail(2, 8).hex())" %t | FileCheck %s --check-prefix=VALUES

// FILES:      result0.npy
// FILES-NEXT: result1.npy
// FILES-NEXT: result2.npy
// FILES-NOT:  {{.}}
// F64:    {'descr': '<f8', 'fortran_order': False, 'shape': (2,), }
// I32:    {'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }
// BF16:   {'descr': '<V2', 'fortran_order': False, 'shape': (4,), }
// VALUES: {{^}}(0.25, 0.25) (-7, -7) c03fc03fc03fc03f{{$}}

func.func @types(%bf16: tensor<4xbf16>, %i32: tensor<1x2xi32>, %integer: i32,
    %f64: tensor<2xf64>, %index: index, %f16: tensor<f16>, %f32: f32)
    -> (tensor<2xf64>, tensor<1x2xi32>, tensor<4xbf16>) {
  return %f64, %i32, %bf16 : tensor<2xf64>, tensor<1x2xi32>, tensor<4xbf16>
}

// Options of the pipeline act on files too.

// RUN: pisa-runner %s --entry=nothing --print-ir-after-level=problem,llvm \
// RUN:   | FileCheck %s --check-prefix=PRINT
// PRINT:      // -----// level problem //----- //
// PRINT:      func.func @nothing
// PRINT:      // -----// level llvm //----- //
// PRINT:      llvm.func @nothing
// RUN: pisa-runner %s --entry=nothing --time=2 --threads=1 \
// RUN:   | FileCheck %s --check-prefix=TIME
// TIME: {{^}}nothing: {{[0-9]+\.[0-9][0-9][0-9]}} ms (median of 2, 1 threads){{$}}

func.func @nothing() {
  return
}
