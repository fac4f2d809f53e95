// An array (.npy, .npz, IDX) becomes the values of a model's input, slice by
// slice.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_ARRAY_INPUT_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_ARRAY_INPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/optimize/samples/model_tensor.h"
#include "engine/optimize/samples/normalization.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::optimize {

// Elements of dimensions first..last-1 of a tensor's outermost axis.
// REQUIRES: 0 <= first <= last <= dim(0).
absl::StatusOr<runtime::Tensor> SliceRows(const runtime::Tensor& tensor,
                                          int64_t first, int64_t last,
                                          bool keep_axis);

struct ArrayInput {
  runtime::Tensor values;
  // Fed unchanged with every sample.
  bool constant = false;
  // A slice keeps its leading axis, as a batch of one.
  bool keep_axis = false;
  // What a slice is reshaped to, where it has another shape than the input.
  std::optional<std::vector<int64_t>> sample_shape;
  // Mean and deviation were applied.
  bool is_scaled = false;
  std::string description;

  int64_t samples() const { return constant ? 0 : values.dim(0); }
  absl::StatusOr<runtime::Tensor> Sample(int64_t index) const;
};

// Decides how an array is fed; where the layout is unspecified, by the rules in
// dataset.h. uint8 values are scaled for a float input, by one mean and
// deviation, or by those of each element of the last axis.
// ERRORS: InvalidArgument when its shape or type does not fit the input.
absl::StatusOr<ArrayInput> MakeArrayInput(runtime::Tensor values,
                                          const ModelTensor& input,
                                          v1::DataSource::Layout layout,
                                          const Normalization& normalization);

// Reads the array of an INPUT source from `path` and decides how it is fed.
// ERRORS: those of reading the file; InvalidArgument naming the file when its
// shape or type does not fit the input.
absl::StatusOr<ArrayInput> LoadArrayInput(const std::string& path,
                                          const v1::DataSource& source,
                                          const ModelTensor& input,
                                          const Normalization& normalization);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_ARRAY_INPUT_H_
