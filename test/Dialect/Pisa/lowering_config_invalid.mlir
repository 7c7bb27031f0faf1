// RUN: pisa-opt %s -verify-diagnostics -split-input-file

// Sizes of tiles are positive and bounded, and all are given.

// query_tile
// expected-error @below {{expected 'query_tile' to be in [1, 1048576], but got 0}}
#config = #pisa.lowering_config<query_tile = 0, leaf_tile = 1, row_tile = 1, column_tile = 1>

// -----

// leaf_tile
// expected-error @below {{expected 'leaf_tile' to be in [1, 1048576], but got -1}}
#config = #pisa.lowering_config<query_tile = 1, leaf_tile = -1, row_tile = 1, column_tile = 1>

// -----

// row_tile
// expected-error @below {{expected 'row_tile' to be in [1, 1048576], but got 1048577}}
#config = #pisa.lowering_config<query_tile = 1, leaf_tile = 1, row_tile = 1048577, column_tile = 1>

// -----

// column_tile
// expected-error @below {{expected 'column_tile' to be in [1, 1048576], but got 9223372036854775807}}
#config = #pisa.lowering_config<query_tile = 1, leaf_tile = 1, row_tile = 1, column_tile = 9223372036854775807>

// -----

// a missing size
// expected-error @below {{struct is missing required parameter: column_tile}}
#config = #pisa.lowering_config<query_tile = 1, leaf_tile = 1, row_tile = 1>

// -----

// operand_type
// expected-error @below {{expected 'operand_type' to be f16 or bf16, but got 'f32'}}
#config = #pisa.lowering_config<query_tile = 1, leaf_tile = 1, row_tile = 1, column_tile = 1, operand_type = f32>

// -----

// gather
// expected-error @below {{expected 'gather' to be in [0, 1048576], but got -1}}
#config = #pisa.lowering_config<query_tile = 1, leaf_tile = 1, row_tile = 1, column_tile = 1, gather = -1>
