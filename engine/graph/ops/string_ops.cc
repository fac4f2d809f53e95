// Rows of ops on text and on serialized examples. op_row.h says what they hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr OpRow kRows[] = {
    // Text.
    {.names = "StringJoin",
     .signature = R"((inputs: N*string) -> (output: string)
       | N: int >= 1; separator: string = "")",
     .shape = StringJoinShape},
    {.names = "StringSplit",
     .signature = R"((input: string, delimiter: string)
       -> (indices: int64, values: string, shape: int64)
       | skip_empty: bool = true)",
     .shape = StringSplitShape},
    {.names = "StringSplitV2",
     .signature = R"((input: string, sep: string)
       -> (indices: int64, values: string, shape: int64) | maxsplit: int = -1)",
     .shape = StringSplitShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StringStrip",
     .signature = "(input: string) -> (output: string)",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StringLower, StringUpper",
     .signature =
         "(input: string) -> (output: string) | encoding: string = \"\"",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StringLength",
     .signature = R"((input: string) -> (output: int32)
       | late unit: string {BYTE, UTF8_CHAR} = BYTE)",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StringToNumber",
     .signature = R"((string_tensor: string) -> (output: out_type)
       | out_type: {float, double, int32, int64, uint32, uint64} = float)",
     .shape = UnchangedShape},
    {.names = "StringToHashBucket",
     .signature = R"((string_tensor: string) -> (output: int64)
       | num_buckets: int >= 1)",
     .shape = UnchangedShape},
    {.names = "StringToHashBucketFast",
     .signature = "(input: string) -> (output: int64) | num_buckets: int >= 1",
     .shape = UnchangedShape},
    {.names = "StringToHashBucketStrong",
     .signature = R"((input: string) -> (output: int64)
       | num_buckets: int >= 1; key: list(int))",
     .shape = UnchangedShape},
    {.names = "AsString",
     .signature = R"((input: T) -> (output: string)
       | T: {number, bool, string, variant}; precision: int = -1;
       scientific: bool = false; shortest: bool = false; width: int = -1;
       fill: string = "")",
     .shape = UnchangedShape},
    {.names = "Substr",
     .signature = R"((input: string, pos: T, len: T) -> (output: string)
       | T: {index}; late unit: string {BYTE, UTF8_CHAR} = BYTE)"},
    {.names = "ReduceJoin",
     .signature =
         R"((inputs: string, reduction_indices: int32) -> (output: string)
       | keep_dims: bool = false; separator: string = "")",
     .shape = ReductionShape},
    {.names = "RegexReplace",
     .signature = R"((input: string, pattern: string, rewrite: string)
       -> (output: string) | replace_global: bool = true)",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StaticRegexReplace",
     .signature = R"((input: string) -> (output: string)
       | pattern: string; rewrite: string; replace_global: bool = true)",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "RegexFullMatch",
     .signature = "(input: string, pattern: string) -> (output: bool)",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StaticRegexFullMatch",
     .signature = "(input: string) -> (output: bool) | pattern: string",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StringFormat",
     .signature = R"((inputs: T) -> (output: string)
       | T: list(type) >= 0; template: string = "%s"; placeholder: string = "%s";
       summarize: int = 3)",
     .shape = ScalarOutputs,
     .origin = Origin::kLaterTensorFlow},
    {.names = "EncodeBase64",
     .signature = "(input: string) -> (output: string) | pad: bool = false",
     .shape = UnchangedShape},
    {.names = "DecodeBase64",
     .signature = "(input: string) -> (output: string)",
     .shape = UnchangedShape},

    // Bytes to tensors.
    {.names = "DecodeRaw",
     .signature = R"((bytes: string) -> (output: out_type)
       | out_type: {real, complex64, complex128, bool}; little_endian: bool = true)",
     .shape = DecodeRawShape},
    {.names = "DecodeCompressed",
     .signature = R"((bytes: string) -> (output: string)
       | compression_type: string = "")",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "DecodeCSV",
     .signature =
         R"((records: string, record_defaults: OUT_TYPE) -> (output: OUT_TYPE)
       | OUT_TYPE: list(type) >= 1; field_delim: string = ",";
       use_quote_delim: bool = true; late na_value: string = "";
       late select_cols: list(int) = [])",
     .shape = UnchangedShape},
    {.names = "ParseTensor",
     .signature =
         "(serialized: string) -> (output: out_type) | out_type: type"},
    {.names = "SerializeTensor",
     .signature = "(tensor: T) -> (serialized: string) | T: type",
     .shape = ScalarOutputs},
    {.names = "ParseExample",
     .signature = R"((
       serialized: string, names: string, sparse_keys: Nsparse*string,
       dense_keys: Ndense*string, dense_defaults: Tdense)
       -> (sparse_indices: Nsparse*int64, sparse_values: sparse_types,
       sparse_shapes: Nsparse*int64, dense_values: Tdense)
       | Nsparse: int >= 0; Ndense: int >= 0; sparse_types: list(type) >= 0;
       Tdense: list(type) >= 0; dense_shapes: list(shape) >= 0)",
     .shape = ParseExampleShape},
    {.names = "ParseSingleExample",
     .signature = R"((serialized: string, dense_defaults: Tdense)
       -> (sparse_indices: num_sparse*int64, sparse_values: sparse_types,
       sparse_shapes: num_sparse*int64, dense_values: Tdense)
       | num_sparse: int >= 0; sparse_keys: list(string) >= 0;
       dense_keys: list(string) >= 0; sparse_types: list(type) >= 0;
       Tdense: list(type) >= 0; dense_shapes: list(shape) >= 0)",
     .shape = ParseSingleExampleShape,
     .origin = Origin::kLaterTensorFlow},
};

}  // namespace

absl::Span<const OpRow> StringOps() { return kRows; }

}  // namespace optfarm::graph
