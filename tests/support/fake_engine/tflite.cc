// The functions of TensorFlow Lite's C API that optfarm-engine calls, over a
// "model" that is one word: what this runtime does with it. Its model has an
// input "x", a float [1,4] unless it is resized, and an output "y", twice that.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

struct Tensor {
  const char* name = "";
  std::vector<int> dims = {1, 4};
  std::vector<float> values = std::vector<float>(4);
};

struct Interpreter {
  std::string word;
  Tensor input, output;
};

constexpr int kFloat = 1;
constexpr int kString = 5;

const Tensor* As(const void* tensor) {
  return static_cast<const Tensor*>(tensor);
}
Interpreter* Of(void* interpreter) {
  return static_cast<Interpreter*>(interpreter);
}

}  // namespace

extern "C" {

const char* TfLiteVersion() { return "9.9.9\n-fake"; }

void* TfLiteModelCreateFromFile(const char* path) {
  std::ifstream file(path);
  auto* word = new std::string;
  file >> *word;
  if (*word != "refuse") return word;
  delete word;
  return nullptr;
}
void TfLiteModelDelete(void* model) { delete static_cast<std::string*>(model); }

void* TfLiteInterpreterOptionsCreate() { return new int(0); }
void TfLiteInterpreterOptionsDelete(void* options) {
  delete static_cast<int*>(options);
}
void TfLiteInterpreterOptionsSetNumThreads(void* options, int32_t threads) {
  *static_cast<int*>(options) = threads;
}

void* TfLiteInterpreterCreate(const void* model, const void* /*options*/) {
  auto* interpreter = new Interpreter;
  interpreter->word = *static_cast<const std::string*>(model);
  interpreter->input.name = "x";
  interpreter->output.name = "y";
  if (interpreter->word == "exit") _exit(7);
  if (interpreter->word == "three") {
    interpreter->input.dims = {1, 3};
    interpreter->input.values.resize(3);
  }
  return interpreter;
}
void TfLiteInterpreterDelete(void* interpreter) { delete Of(interpreter); }

int32_t TfLiteInterpreterGetInputTensorCount(const void* /*interpreter*/) {
  return 1;
}
void* TfLiteInterpreterGetInputTensor(void* interpreter, int32_t /*index*/) {
  return &Of(interpreter)->input;
}
int32_t TfLiteInterpreterGetOutputTensorCount(void* interpreter) {
  return Of(interpreter)->word == "many" ? 1 << 30 : 1;
}
const void* TfLiteInterpreterGetOutputTensor(void* interpreter,
                                             int32_t /*index*/) {
  return &Of(interpreter)->output;
}

int TfLiteInterpreterResizeInputTensor(void* interpreter, int32_t /*index*/,
                                       const int* dims, int32_t rank) {
  if (Of(interpreter)->word == "fixed") return 1;
  Of(interpreter)->input.dims.assign(dims, dims + rank);
  return 0;
}
int TfLiteInterpreterAllocateTensors(void* interpreter) {
  Interpreter& it = *Of(interpreter);
  size_t count = 1;
  for (const int dim : it.input.dims) count *= static_cast<size_t>(dim);
  it.input.values.resize(count);
  it.output.dims = it.input.dims;
  it.output.values.resize(count);
  return 0;
}

int TfLiteInterpreterInvoke(void* interpreter) {
  Interpreter& it = *Of(interpreter);
  if (it.word == "crash") ::raise(SIGSEGV);
  if (it.word == "hang") {
    for (volatile bool forever = true; forever;) continue;
  }
  if (it.word == "fail") return 1;
  // Neither may disturb what our programs say to each other.
  if (it.word == "print") {
    std::puts("a runtime prints what it likes");
    std::fflush(stdout);
    std::getchar();
  }
  for (size_t i = 0; i < it.input.values.size(); ++i) {
    it.output.values[i] = 2 * it.input.values[i];
  }
  // What a runtime may do with its inputs.
  std::fill(it.input.values.begin(), it.input.values.end(), -1.0F);
  if (it.word == "wrong") it.output.values[0] += 1;
  return 0;
}

int TfLiteTensorType(const void* tensor) {
  return As(tensor)->dims.empty() ? kString : kFloat;
}
int32_t TfLiteTensorNumDims(const void* tensor) {
  return static_cast<int32_t>(As(tensor)->dims.size());
}
int32_t TfLiteTensorDim(const void* tensor, int32_t index) {
  return As(tensor)->dims[static_cast<size_t>(index)];
}
size_t TfLiteTensorByteSize(const void* tensor) {
  return As(tensor)->values.size() * sizeof(float);
}
const char* TfLiteTensorName(const void* tensor) { return As(tensor)->name; }

int TfLiteTensorCopyFromBuffer(void* tensor, const void* bytes, size_t size) {
  if (size != TfLiteTensorByteSize(tensor)) return 1;
  std::memcpy(static_cast<Tensor*>(tensor)->values.data(), bytes, size);
  return 0;
}
int TfLiteTensorCopyToBuffer(const void* tensor, void* bytes, size_t size) {
  if (size != TfLiteTensorByteSize(tensor)) return 1;
  std::memcpy(bytes, As(tensor)->values.data(), size);
  return 0;
}

}  // extern "C"
