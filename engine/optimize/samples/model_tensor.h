// What is known of a model's input or output while a job works on it.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_MODEL_TENSOR_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_MODEL_TENSOR_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/tensor_name.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::optimize {

struct ModelTensor {
  graph::TensorName name;
  // DT_INVALID: not known.
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  // -1 for a dimension that is not known; nullopt when nothing is known.
  std::optional<std::vector<int64_t>> shape;
  // A DecodeWav node reads it: a string that holds a WAV file.
  bool is_wav_file = false;
  // The range that training found for it, where a fake quantization with a
  // constant range reads it.
  std::optional<std::pair<float, float>> trained_range;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_MODEL_TENSOR_H_
