#include "engine/optimize/samples/random_input.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/samples/wav.h"
#include "engine/graph/attr.h"

namespace optfarm::optimize {
namespace {

using runtime::Shape;
using runtime::Tensor;

// UNITS: elements of one made-up value.
constexpr int64_t kMaxRandomElements = int64_t{1} << 28;

// Uniform in 0..1, the same on every machine.
double Uniform(std::mt19937_64* random) {
  return static_cast<double>((*random)() >> 11) * 0x1p-53;
}

// One second of noise at 16 kHz, louder and softer by the sample.
std::string RandomWav(std::mt19937_64* random) {
  std::vector<float> samples(16000);
  const double loudness = Uniform(random);
  for (float& sample : samples) {
    sample = static_cast<float>(loudness * (2 * Uniform(random) - 1));
  }
  return formats::SerializeWav(samples, 16000);
}

bool CanMakeUp(const ModelTensor& input) {
  switch (input.dtype) {
    case tensorflow::DT_STRING:
      return input.is_wav_file;
    case tensorflow::DT_FLOAT:
    case tensorflow::DT_DOUBLE:
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
    case tensorflow::DT_INT8:
    case tensorflow::DT_INT32:
    case tensorflow::DT_INT64:
    case tensorflow::DT_BOOL:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status CheckMakeUp(const ModelTensor& input) {
  const std::string name = graph::ToString(input.name);
  if (!input.shape.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("The shape of input '", name,
                     "' is not known; give it, for instance "
                     "--inputs=",
                     name, ":1,224,224,3, or calibration data"));
  }
  int64_t elements = 1;
  for (const int64_t dim : *input.shape) {
    if (__builtin_mul_overflow(elements, std::max<int64_t>(dim, 1),
                               &elements) ||
        elements > kMaxRandomElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("Input '", name, "' is too large to make up"));
    }
  }
  if (!CanMakeUp(input)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "No values can be made up for input '", name, "' (",
        graph::DataTypeName(input.dtype), "); give calibration data"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> RandomValue(const ModelTensor& input, uint64_t seed) {
  std::vector<int64_t> dims = *input.shape;
  for (int64_t& dim : dims) dim = dim < 0 ? 1 : dim;
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Zeros(input.dtype, shape));
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const double u = Uniform(&random);
    switch (input.dtype) {
      case tensorflow::DT_FLOAT:
        tensor.data<float>()[i] = static_cast<float>(2 * u - 1);
        break;
      case tensorflow::DT_DOUBLE:
        tensor.data<double>()[i] = 2 * u - 1;
        break;
      case tensorflow::DT_UINT8:
      case tensorflow::DT_QUINT8:
        tensor.data<uint8_t>()[i] = static_cast<uint8_t>(u * 256);
        break;
      case tensorflow::DT_INT8:
        tensor.data<int8_t>()[i] = static_cast<int8_t>(u * 256 - 128);
        break;
      case tensorflow::DT_INT32:
        tensor.data<int32_t>()[i] = static_cast<int32_t>(u * 10);
        break;
      case tensorflow::DT_INT64:
        tensor.data<int64_t>()[i] = static_cast<int64_t>(u * 10);
        break;
      case tensorflow::DT_STRING:
        tensor.data<std::string>()[i] = RandomWav(&random);
        break;
      default:
        break;
    }
  }
  return tensor;
}

}  // namespace optfarm::optimize
