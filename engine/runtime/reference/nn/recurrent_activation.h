// The activation functions of recurrent layers, chosen by name.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_RECURRENT_ACTIVATION_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_RECURRENT_ACTIVATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

struct RecurrentActivation {
  enum class Kind {
    kSigmoid,
    kTanh,
    kRelu,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  };
  Kind kind = Kind::kTanh;
  float alpha = 0;
  float beta = 0;

  // Appends the factors that the function has, as the lists of a node do.
  void AppendFactors(std::vector<float>* alphas,
                     std::vector<float>* betas) const;

  // Applies it to each of `count` elements.
  template <typename T>
  void Apply(T* values, int64_t count) const;
};

// The node's attributes activations, activation_alpha and activation_beta for
// `directions` times the functions in `defaults`.
// ERRORS: InvalidArgument for another number of them; Unimplemented for one
// that we do not know.
absl::StatusOr<std::vector<RecurrentActivation>> ReadRecurrentActivations(
    const tensorflow::NodeDef& node, int64_t directions,
    const std::vector<absl::string_view>& defaults);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_RECURRENT_ACTIVATION_H_
