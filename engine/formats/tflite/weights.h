// Constant weights in the layouts of the graph's ops: permuted when they are
// read, so that no Transpose stands in front of a layer.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_WEIGHTS_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_WEIGHTS_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/tensor_facts.h"

namespace optfarm::tflite {

// Weights of one operator: an input, or the constant that it was made of.
class Weights {
 public:
  // ERRORS: InvalidArgument for a missing input or one of another rank;
  // Unimplemented for quantization that no runtime has either.
  static absl::StatusOr<Weights> Read(OpLowering& c, int input, int rank);

  // As the file has them; -1 for a dimension that is not known.
  const std::vector<int64_t>& shape() const { return shape_; }
  // Scale and zero point; nullopt for real weights.
  const std::optional<Quantization>& quantization() const {
    return quantization_;
  }

  // Real values with dimension i being the file's order[i].
  Value Permuted(const std::vector<int>& order, absl::string_view suffix) const;
  // The same, then given another shape of as many elements.
  // `quantized_axis` is that of the channels in this shape; -1 where they have
  // none, so that it is given after the scales were applied.
  Value Reshaped(const std::vector<int>& order,
                 const std::vector<int64_t>& shape, int quantized_axis,
                 absl::string_view suffix) const;

 private:
  Weights(OpLowering& c, int input) : c_(&c), input_(input) {}
  Value Scaled(const Constant& constant, int axis,
               absl::string_view suffix) const;

  OpLowering* c_;
  int input_;
  std::vector<int64_t> shape_;
  // Where they are constant.
  std::optional<Constant> constant_;
  std::optional<Quantization> quantization_;
  int bits_ = 8;
  // The tensor's node, for constants.
  std::string name_;
};

// `value` plus input `i`, a bias for each element of the last dimension; the
// value itself where there is none. The scale of a bias of integers is that of
// the products of `input` and `weights`.
// ERRORS: as Weights::Read.
absl::StatusOr<Value> Biased(OpLowering& c, const Value& value, int i,
                             int input, const Weights& weights);

}  // namespace optfarm::tflite

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_WEIGHTS_H_
