// Signatures of ops that draw random numbers. The notation is explained in
// op_signatures.h.

#include "engine/graph/op_signatures.h"

namespace optfarm::graph {

absl::string_view RandomOpSignatures() {
  static constexpr absl::string_view kText = R"(
RandomUniform, RandomStandardNormal, TruncatedNormal(shape: T)
  -> (output: dtype) stateful
  | seed: int = 0; seed2: int = 0; dtype: {floating}; T: {index}
RandomUniformInt(shape: T, minval: Tout, maxval: Tout) -> (output: Tout)
  stateful | seed: int = 0; seed2: int = 0; Tout: {index}; T: {index}
ParameterizedTruncatedNormal(
  shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype)
  -> (output: dtype) stateful
  | seed: int = 0; seed2: int = 0; dtype: {floating}; T: {index}
RandomShuffle(value: T) -> (output: T) stateful
  | seed: int = 0; seed2: int = 0; T: type
Multinomial(logits: T, num_samples: int32) -> (output: output_dtype) stateful
  | seed: int = 0; seed2: int = 0; T: {real};
    late output_dtype: {index} = int64
RandomGamma(shape: S, alpha: T) -> (output: T) stateful
  | seed: int = 0; seed2: int = 0; S: {index}; T: {half, float, double}
RandomPoisson(shape: S, rate: dtype) -> (output: dtype) stateful
  | seed: int = 0; seed2: int = 0; S: {index}; dtype: {half, float, double}
RandomPoissonV2(shape: S, rate: R) -> (output: dtype) stateful
  | seed: int = 0; seed2: int = 0; S: {index};
    R: {half, float, double, int32, int64} = double;
    dtype: {half, float, double, int32, int64} = int64
StatelessRandomUniform, StatelessRandomNormal, StatelessTruncatedNormal(
  shape: T, seed: Tseed) -> (output: dtype)
  | dtype: {floating} = float; T: {index} = int32; Tseed: {index} = int64
StatelessRandomUniformInt(
  shape: T, seed: Tseed, minval: dtype, maxval: dtype) -> (output: dtype)
  | dtype: {index}; T: {index}; Tseed: {index} = int64
StatelessMultinomial(logits: T, num_samples: int32, seed: Tseed)
  -> (output: output_dtype)
  | T: {real}; Tseed: {index} = int64; output_dtype: {index} = int64
)";
  return kText;
}

}  // namespace optfarm::graph
