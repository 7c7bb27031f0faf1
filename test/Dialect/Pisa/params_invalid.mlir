// RUN: pisa-opt %s -verify-diagnostics -split-input-file

// Each constraint of #pisa.params, and numbers that would overflow.

// params-1
// expected-error @below {{expected 'block_size' to be in [1, 4096], but got 0}}
#params = #pisa.params<block_size = 0>

// -----

// params-1
// expected-error @below {{expected 'fanout' to be in [2, 64], but got 1}}
#params = #pisa.params<fanout = 1>

// -----

// params-1
// expected-error @below {{expected 'topk' to be in [1, 4096], but got 0}}
#params = #pisa.params<topk = 0>

// -----

// params-1
// expected-error @below {{expected 'query_block' to be in [1, 4096], but got 0}}
#params = #pisa.params<query_block = 0>

// -----

// params-1
// expected-error @below {{expected 'sink_blocks' to be in [0, 4096], but got -1}}
#params = #pisa.params<sink_blocks = -1>

// -----

// params-1
// expected-error @below {{expected 'local_blocks' to be in [0, 4096], but got -1}}
#params = #pisa.params<local_blocks = -1, causal = false>

// -----

// params-1, largest values
// expected-error @below {{expected 'topk' to be in [1, 4096], but got 9223372036854775807}}
#params = #pisa.params<topk = 9223372036854775807>

// -----

// params-1, largest values
// expected-error @below {{expected 'block_size' to be in [1, 4096], but got 9223372036854775807}}
#params = #pisa.params<block_size = 9223372036854775807>

// -----

// params-1, largest values
// expected-error @below {{expected 'fanout' to be in [2, 64], but got 9223372036854775807}}
#params = #pisa.params<fanout = 9223372036854775807>

// -----

// params-1, largest values
// expected-error @below {{expected 'query_block' to be in [1, 4096], but got 9223372036854775807}}
#params = #pisa.params<query_block = 9223372036854775807>

// -----

// params-1, largest values
// expected-error @below {{expected 'sink_blocks' to be in [0, 4096], but got 4097}}
#params = #pisa.params<sink_blocks = 4097>

// -----

// params-1, one past the largest
// expected-error @below {{expected 'block_size' to be in [1, 4096], but got 4097}}
#params = #pisa.params<block_size = 4097>

// -----

// params-1, one past the largest
// expected-error @below {{expected 'fanout' to be in [2, 64], but got 65}}
#params = #pisa.params<fanout = 65>

// -----

// params-1, one past the largest
// expected-error @below {{expected 'topk' to be in [1, 4096], but got 4097}}
#params = #pisa.params<topk = 4097>

// -----

// params-1, one past the largest
// expected-error @below {{expected 'beam' to be in [1, 4096], but got 4097}}
#params = #pisa.params<beam = 4097>

// -----

// params-1, one past the largest
// expected-error @below {{expected 'query_block' to be in [1, 4096], but got 4097}}
#params = #pisa.params<query_block = 4097>

// -----

// params-1, one past the largest
// expected-error @below {{expected 'local_blocks' to be in [0, 4096], but got 4097}}
#params = #pisa.params<local_blocks = 4097>

// -----

// params-1, one past the largest
// expected-error @below {{expected 'leaf_atoms' to be in [1, 256], but got 257}}
#params = #pisa.params<leaf_atoms = 257>

// -----

// params-1, smallest values
// expected-error @below {{expected 'block_size' to be in [1, 4096], but got -9223372036854775808}}
#params = #pisa.params<block_size = -9223372036854775808>

// -----

// params-2
// expected-error @below {{expected 'local_blocks' to be at least 1 in causal attention, but got 0}}
#params = #pisa.params<local_blocks = 0>

// -----

// params-3
// expected-error @below {{expected 'topk' to be at least 3, the number of forced blocks, but got 2}}
#params = #pisa.params<topk = 2>

// -----

// params-3, with a query block that spans two leaves
// expected-error @below {{expected 'topk' to be at least 4, the number of forced blocks, but got 3}}
#params = #pisa.params<topk = 3, query_block = 2>

// -----

// params-3, also without causality
// expected-error @below {{expected 'topk' to be at least 7, the number of forced blocks, but got 4}}
#params = #pisa.params<topk = 4, sink_blocks = 5, causal = false>

// -----

// params-4
// expected-error @below {{expected 'beam' to be at least 'topk' = 8, but got 7}}
#params = #pisa.params<topk = 8, beam = 7>

// -----

// params-1
// expected-error @below {{expected 'beam' to be in [1, 4096], but got 0}}
#params = #pisa.params<topk = 8, beam = 0>

// -----

// params-1
// expected-error @below {{expected 'beam' to be in [1, 4096], but got 9223372036854775807}}
#params = #pisa.params<topk = 8, beam = 9223372036854775807>

// -----

// params-5
// expected-error @below {{expected 'rerank' to be 0 or in ['topk', 'fanout' * 'beam'] = [8, 16], but got 7}}
#params = #pisa.params<topk = 8, rerank = 7>

// -----

// params-5
// expected-error @below {{expected 'rerank' to be 0 or in ['topk', 'fanout' * 'beam'] = [8, 16], but got 17}}
#params = #pisa.params<topk = 8, rerank = 17>

// -----

// params-5, with a beam
// expected-error @below {{expected 'rerank' to be 0 or in ['topk', 'fanout' * 'beam'] = [8, 32], but got 33}}
#params = #pisa.params<topk = 8, beam = 16, rerank = 33>

// -----

// params-5
// expected-error @below {{expected 'rerank' to be 0 or in ['topk', 'fanout' * 'beam'] = [16, 32], but got -1}}
#params = #pisa.params<rerank = -1>

// -----

// params-1
// expected-error @below {{expected 'leaf_atoms' to be in [1, 256], but got 0}}
#params = #pisa.params<leaf_atoms = 0>

// -----

// params-6
// expected-error @below {{expected 'leaf_atoms' to divide 'block_size' = 64, but got 3}}
#params = #pisa.params<rerank = 0, leaf_atoms = 3>

// -----

// params-7
// expected-error @below {{expected 'summary_dtype' to be f32, f16 or bf16, but got 'f64'}}
#params = #pisa.params<summary_dtype = f64>

// -----

// params-7
// expected-error @below {{expected 'summary_dtype' to be f32, f16 or bf16, but got 'i8'}}
#params = #pisa.params<summary_dtype = i8>

// -----

// an unknown name
// expected-error @below {{duplicate or unknown struct parameter name: top_k}}
#params = #pisa.params<top_k = 4>

// -----

// a name given twice
// expected-error @below {{duplicate or unknown struct parameter name: topk}}
#params = #pisa.params<topk = 4, topk = 8>

// -----

// a number that does not fit in 64 bits
// expected-error @+2 {{integer value too large}}
// expected-error @below {{failed to parse Pisa_ParamsAttr parameter 'topk' which is to be a `int64_t`}}
#params = #pisa.params<topk = 9223372036854775808>

// -----

// not a number
// expected-error @+2 {{expected integer value}}
// expected-error @below {{failed to parse Pisa_ParamsAttr parameter 'topk' which is to be a `int64_t`}}
#params = #pisa.params<topk = 4.0>

// -----

// not a type
// expected-error @+2 {{expected non-function type}}
// expected-error @below {{failed to parse Pisa_ParamsAttr parameter 'summary_dtype' which is to be a `::mlir::Type`}}
#params = #pisa.params<summary_dtype = 4>
