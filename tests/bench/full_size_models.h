// Full-size networks with random weights, for measuring what depends on size
// alone: how long transforms take, what they hold in memory, how fast a graph
// runs. Weights are scaled so that activations stay within a few units.
//
//   mobilenet_v1   1.0, 224 x 224, fused batch norms, 17 MB
//   resnet50_v1    224 x 224, fused batch norms, 103 MB
//   inception_v3   299 x 299, as the file of 2015: BatchNormWithGlobal-
//                  Normalization, CheckNumerics, Identity; 96 MB

#ifndef OPTFARM_TESTS_BENCH_FULL_SIZE_MODELS_H_
#define OPTFARM_TESTS_BENCH_FULL_SIZE_MODELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::bench {

struct FullSizeModel {
  tensorflow::GraphDef graph;
  // Names for --inputs and --outputs.
  std::string input;
  std::string output;
  // The input's shape, as strip_unused_nodes takes it.
  std::string input_shape;
};

std::vector<std::string> FullSizeModelNames();

// The same seed gives the same bytes on every machine.
// ERRORS: InvalidArgument for a name that is not in the list above.
absl::StatusOr<FullSizeModel> MakeFullSizeModel(absl::string_view name,
                                                uint64_t seed = 1);

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_FULL_SIZE_MODELS_H_
