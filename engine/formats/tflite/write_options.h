// What a user may choose about a TensorFlow Lite model that is written.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_WRITE_OPTIONS_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_WRITE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "engine/graph/infer_io.h"

namespace optfarm::formats {

// What weights of float layers are stored as.
enum class TfliteWeights : uint8_t {
  kAsTheyAre,
  kHalf,  // Half precision, widened when the model runs.
  kInt8,  // Symmetric int8; runtimes quantize activations in each run.
};

// The type of quantized inputs and outputs.
enum class TfliteEnds : uint8_t {
  kAsTheyAre,
  kFloat,
  kInt8,
  kUint8,
};

struct TfliteWriteOptions {
  // Inputs and outputs; what is left out is inferred.
  graph::IoRequest io;
  // Keeps an unknown first dimension of inputs unknown. Otherwise it is
  // io.batch, because some runtimes refuse models whose batch is open.
  bool dynamic_batch = false;
  TfliteWeights weights = TfliteWeights::kAsTheyAre;
  TfliteEnds ends = TfliteEnds::kAsTheyAre;
  // Stored in the file.
  std::string description = "written by Optfarm";
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_WRITE_OPTIONS_H_
