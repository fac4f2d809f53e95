// Rows of ops that draw random numbers. op_row.h says what they hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr OpRow kRows[] = {
    {.names = "RandomUniform, RandomStandardNormal, TruncatedNormal",
     .signature = R"((shape: T)
       -> (output: dtype) stateful
       | seed: int = 0; seed2: int = 0; dtype: {floating}; T: {index})",
     .shape = ShapeInInput0},
    {.names = "RandomUniformInt",
     .signature = R"((shape: T, minval: Tout, maxval: Tout) -> (output: Tout)
       stateful | seed: int = 0; seed2: int = 0; Tout: {index}; T: {index})",
     .shape = ShapeInInput0},
    {.names = "ParameterizedTruncatedNormal",
     .signature = R"((
       shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype)
       -> (output: dtype) stateful
       | seed: int = 0; seed2: int = 0; dtype: {floating}; T: {index})",
     .shape = ShapeInInput0},
    {.names = "RandomShuffle",
     .signature = R"((value: T) -> (output: T) stateful
       | seed: int = 0; seed2: int = 0; T: type)",
     .shape = UnchangedShape},
    {.names = "Multinomial",
     .signature =
         R"((logits: T, num_samples: int32) -> (output: output_dtype) stateful
       | seed: int = 0; seed2: int = 0; T: {real};
       late output_dtype: {index} = int64)",
     .shape = MultinomialShape},
    {.names = "RandomGamma",
     .signature = R"((shape: S, alpha: T) -> (output: T) stateful
       | seed: int = 0; seed2: int = 0; S: {index}; T: {half, float, double})",
     .shape = SamplePerParameterShape},
    {.names = "RandomPoisson",
     .signature = R"((shape: S, rate: dtype) -> (output: dtype) stateful
       | seed: int = 0; seed2: int = 0; S: {index}; dtype: {half, float, double})",
     .shape = SamplePerParameterShape},
    {.names = "RandomPoissonV2",
     .signature = R"((shape: S, rate: R) -> (output: dtype) stateful
       | seed: int = 0; seed2: int = 0; S: {index};
       R: {half, float, double, int32, int64} = double;
       dtype: {half, float, double, int32, int64} = int64)",
     .shape = SamplePerParameterShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StatelessRandomUniform, StatelessRandomNormal, "
              "StatelessTruncatedNormal",
     .signature = R"((
       shape: T, seed: Tseed) -> (output: dtype)
       | dtype: {floating} = float; T: {index} = int32; Tseed: {index} = int64)",
     .shape = ShapeInInput0},
    {.names = "StatelessRandomUniformInt",
     .signature = R"((
       shape: T, seed: Tseed, minval: dtype, maxval: dtype) -> (output: dtype)
       | dtype: {index}; T: {index}; Tseed: {index} = int64)",
     .shape = ShapeInInput0,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StatelessMultinomial",
     .signature = R"((logits: T, num_samples: int32, seed: Tseed)
       -> (output: output_dtype)
       | T: {real}; Tseed: {index} = int64; output_dtype: {index} = int64)",
     .shape = MultinomialShape,
     .origin = Origin::kLaterTensorFlow},
};

}  // namespace

absl::Span<const OpRow> RandomOps() { return kRows; }

}  // namespace optfarm::graph
