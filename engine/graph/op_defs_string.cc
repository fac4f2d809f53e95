// Signatures of ops on text and on serialized examples. The notation is
// explained in op_signatures.h.

#include "engine/graph/op_signatures.h"

namespace optfarm::graph {

absl::string_view StringOpSignatures() {
  static constexpr absl::string_view kText = R"(
# Text.
StringJoin(inputs: N*string) -> (output: string)
  | N: int >= 1; separator: string = ""
StringSplit(input: string, delimiter: string)
  -> (indices: int64, values: string, shape: int64)
  | skip_empty: bool = true
StringSplitV2(input: string, sep: string)
  -> (indices: int64, values: string, shape: int64) | maxsplit: int = -1
StringStrip(input: string) -> (output: string)
StringLower, StringUpper(input: string) -> (output: string)
  | encoding: string = ""
StringLength(input: string) -> (output: int32)
  | late unit: string {BYTE, UTF8_CHAR} = BYTE
StringToNumber(string_tensor: string) -> (output: out_type)
  | out_type: {float, double, int32, int64, uint32, uint64} = float
StringToHashBucket(string_tensor: string) -> (output: int64)
  | num_buckets: int >= 1
StringToHashBucketFast(input: string) -> (output: int64)
  | num_buckets: int >= 1
StringToHashBucketStrong(input: string) -> (output: int64)
  | num_buckets: int >= 1; key: list(int)
AsString(input: T) -> (output: string)
  | T: {number, bool, string, variant}; precision: int = -1;
    scientific: bool = false; shortest: bool = false; width: int = -1;
    fill: string = ""
Substr(input: string, pos: T, len: T) -> (output: string)
  | T: {index}; late unit: string {BYTE, UTF8_CHAR} = BYTE
ReduceJoin(inputs: string, reduction_indices: int32) -> (output: string)
  | keep_dims: bool = false; separator: string = ""
RegexReplace(input: string, pattern: string, rewrite: string)
  -> (output: string) | replace_global: bool = true
StaticRegexReplace(input: string) -> (output: string)
  | pattern: string; rewrite: string; replace_global: bool = true
RegexFullMatch(input: string, pattern: string) -> (output: bool)
StaticRegexFullMatch(input: string) -> (output: bool) | pattern: string
StringFormat(inputs: T) -> (output: string)
  | T: list(type) >= 0; template: string = "%s"; placeholder: string = "%s";
    summarize: int = 3
EncodeBase64(input: string) -> (output: string) | pad: bool = false
DecodeBase64(input: string) -> (output: string)

# Bytes to tensors.
DecodeRaw(bytes: string) -> (output: out_type)
  | out_type: {real, complex64, complex128, bool}; little_endian: bool = true
DecodeCompressed(bytes: string) -> (output: string)
  | compression_type: string = ""
DecodeCSV(records: string, record_defaults: OUT_TYPE) -> (output: OUT_TYPE)
  | OUT_TYPE: list(type) >= 1; field_delim: string = ",";
    use_quote_delim: bool = true; late na_value: string = "";
    late select_cols: list(int) = []
ParseTensor(serialized: string) -> (output: out_type) | out_type: type
SerializeTensor(tensor: T) -> (serialized: string) | T: type
ParseExample(
  serialized: string, names: string, sparse_keys: Nsparse*string,
  dense_keys: Ndense*string, dense_defaults: Tdense)
  -> (sparse_indices: Nsparse*int64, sparse_values: sparse_types,
      sparse_shapes: Nsparse*int64, dense_values: Tdense)
  | Nsparse: int >= 0; Ndense: int >= 0; sparse_types: list(type) >= 0;
    Tdense: list(type) >= 0; dense_shapes: list(shape) >= 0
ParseSingleExample(serialized: string, dense_defaults: Tdense)
  -> (sparse_indices: num_sparse*int64, sparse_values: sparse_types,
      sparse_shapes: num_sparse*int64, dense_values: Tdense)
  | num_sparse: int >= 0; sparse_keys: list(string) >= 0;
    dense_keys: list(string) >= 0; sparse_types: list(type) >= 0;
    Tdense: list(type) >= 0; dense_shapes: list(shape) >= 0
)";
  return kText;
}

}  // namespace optfarm::graph
