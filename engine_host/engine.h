// A runtime of somebody else's, loaded from its shared library.

#ifndef OPTFARM_ENGINE_HOST_ENGINE_H_
#define OPTFARM_ENGINE_HOST_ENGINE_H_

#include <memory>
#include <string>
#include <vector>

#include "engine_host/protocol.h"

namespace optfarm::engine_host {

// What went wrong; empty: nothing.
using Problem = std::string;

// One model in one runtime. Its calls come in the order in which they stand
// here; Feed, Run and Fetch any number of times. THREADS: one.
class Engine {
 public:
  virtual ~Engine() = default;

  // As the runtime says itself.
  virtual std::string Version() const = 0;

  virtual Problem Load(const std::string& model_path, int threads) = 0;
  virtual const std::vector<TensorInfo>& inputs() const = 0;
  virtual const std::vector<TensorInfo>& outputs() const = 0;

  // One value for each input, in their order.
  virtual Problem Feed(std::vector<TensorValue> values) = 0;
  // What a run needs and no app would count as one.
  virtual Problem Prepare() = 0;
  virtual Problem Run() = 0;
  // The outputs of the last run.
  virtual Problem Fetch(std::vector<TensorValue>* values) = 0;
};

// "onnxruntime" or "tflite". `library` is the path of its shared library.
// nullptr, and why, when it cannot be loaded or is not what it should be.
std::unique_ptr<Engine> OpenEngine(const std::string& name,
                                   const std::string& library,
                                   Problem* problem);

std::unique_ptr<Engine> OpenOnnxRuntime(const std::string& library,
                                        Problem* problem);
std::unique_ptr<Engine> OpenTflite(const std::string& library,
                                   Problem* problem);

}  // namespace optfarm::engine_host

#endif  // OPTFARM_ENGINE_HOST_ENGINE_H_
