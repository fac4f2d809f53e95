// Writes a network layer by layer into a GraphDef, with random weights.

#ifndef OPTFARM_TESTS_BENCH_NETWORK_WRITER_H_
#define OPTFARM_TESTS_BENCH_NETWORK_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::bench {

// The end of what has been written so far: a tensor and its channels.
struct Layer {
  std::string name;
  int64_t channels = 0;
};

struct ConvolutionShape {
  int64_t height = 1;
  int64_t width = 1;
  // Ignored by depthwise convolutions.
  int64_t filters = 0;
  int64_t stride = 1;
  std::string padding = "SAME";
};

class NetworkWriter {
 public:
  explicit NetworkWriter(uint64_t seed) : random_(seed) {}

  // A node with attribute T = float (Const and Placeholder: dtype); returns it
  // for further attributes.
  tensorflow::NodeDef* Node(const std::string& name, const std::string& op,
                            const std::vector<std::string>& inputs);
  void Placeholder(const std::string& name, const std::vector<int64_t>& shape);

  // Uniform between mean - spread and mean + spread.
  void Floats(const std::string& name, const std::vector<int64_t>& shape,
              float mean, float spread);
  void Ints(const std::string& name, const std::vector<int64_t>& shape,
            const std::vector<int32_t>& values);

  // Const `name` and Identity `name`/read, as variables freeze.
  std::string Variable(const std::string& name,
                       const std::vector<int64_t>& shape, float mean,
                       float spread);

  Layer Convolution(const std::string& name, const std::string& weights,
                    const Layer& input, const ConvolutionShape& shape);
  Layer Depthwise(const std::string& name, const std::string& weights,
                  const Layer& input, const ConvolutionShape& shape);
  // `op` is MaxPool or AvgPool.
  Layer Pool(const std::string& name, const std::string& op, const Layer& input,
             int64_t size, int64_t stride, const std::string& padding);
  // `gain` scales the output.
  Layer FusedBatchNorm(const std::string& name, const std::string& scope,
                       const Layer& input, float gain);

  tensorflow::GraphDef TakeGraph() { return std::move(graph_); }

 private:
  float Uniform();

  tensorflow::GraphDef graph_;
  uint64_t random_;
};

void SetInts(tensorflow::NodeDef* node, const std::string& attr,
             const std::vector<int64_t>& values);

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_NETWORK_WRITER_H_
