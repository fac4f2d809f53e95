// Models in TensorFlow Lite (LiteRT), on the processor, through its C API.

#include <cstring>
#include <utility>

#include "engine_host/engine.h"
#include "engine_host/library.h"

namespace optfarm::engine_host {
namespace {

struct TfLiteModel;
struct TfLiteInterpreterOptions;
struct TfLiteInterpreter;
struct TfLiteTensor;

// The functions of the C API that we call; a status of 0 is success.
struct Api {
  const char* (*version)();
  TfLiteModel* (*model_create)(const char* path);
  void (*model_delete)(TfLiteModel*);
  TfLiteInterpreterOptions* (*options_create)();
  void (*options_delete)(TfLiteInterpreterOptions*);
  void (*options_threads)(TfLiteInterpreterOptions*, int32_t threads);
  TfLiteInterpreter* (*create)(const TfLiteModel*,
                               const TfLiteInterpreterOptions*);
  void (*destroy)(TfLiteInterpreter*);
  int32_t (*input_count)(const TfLiteInterpreter*);
  TfLiteTensor* (*input)(const TfLiteInterpreter*, int32_t index);
  int32_t (*output_count)(const TfLiteInterpreter*);
  const TfLiteTensor* (*output)(const TfLiteInterpreter*, int32_t index);
  int (*resize)(TfLiteInterpreter*, int32_t index, const int* dims,
                int32_t rank);
  int (*allocate)(TfLiteInterpreter*);
  int (*invoke)(TfLiteInterpreter*);
  int (*type)(const TfLiteTensor*);
  int32_t (*rank)(const TfLiteTensor*);
  int32_t (*dim)(const TfLiteTensor*, int32_t index);
  size_t (*bytes)(const TfLiteTensor*);
  const char* (*name)(const TfLiteTensor*);
  int (*copy_in)(TfLiteTensor*, const void* bytes, size_t size);
  int (*copy_out)(const TfLiteTensor*, void* bytes, size_t size);
};

Problem FindApi(const std::string& path, Api* api) {
  Library file;
  const Problem problem = file.Open(path);
  if (!problem.empty()) return problem;
  file.Find("TfLiteVersion", &api->version);
  file.Find("TfLiteModelCreateFromFile", &api->model_create);
  file.Find("TfLiteModelDelete", &api->model_delete);
  file.Find("TfLiteInterpreterOptionsCreate", &api->options_create);
  file.Find("TfLiteInterpreterOptionsDelete", &api->options_delete);
  file.Find("TfLiteInterpreterOptionsSetNumThreads", &api->options_threads);
  file.Find("TfLiteInterpreterCreate", &api->create);
  file.Find("TfLiteInterpreterDelete", &api->destroy);
  file.Find("TfLiteInterpreterGetInputTensorCount", &api->input_count);
  file.Find("TfLiteInterpreterGetInputTensor", &api->input);
  file.Find("TfLiteInterpreterGetOutputTensorCount", &api->output_count);
  file.Find("TfLiteInterpreterGetOutputTensor", &api->output);
  file.Find("TfLiteInterpreterResizeInputTensor", &api->resize);
  file.Find("TfLiteInterpreterAllocateTensors", &api->allocate);
  file.Find("TfLiteInterpreterInvoke", &api->invoke);
  file.Find("TfLiteTensorType", &api->type);
  file.Find("TfLiteTensorNumDims", &api->rank);
  file.Find("TfLiteTensorDim", &api->dim);
  file.Find("TfLiteTensorByteSize", &api->bytes);
  file.Find("TfLiteTensorName", &api->name);
  file.Find("TfLiteTensorCopyFromBuffer", &api->copy_in);
  file.Find("TfLiteTensorCopyToBuffer", &api->copy_out);
  return file.Missing();
}

// TensorFlow Lite's numbers of types, in order.
constexpr ElementType kTypes[] = {
    ElementType::kNone,  ElementType::kFloat,  ElementType::kInt32,
    ElementType::kUint8, ElementType::kInt64,  ElementType::kNone,
    ElementType::kBool,  ElementType::kInt16,  ElementType::kNone,
    ElementType::kInt8,  ElementType::kHalf,   ElementType::kDouble,
    ElementType::kNone,  ElementType::kUint64, ElementType::kNone,
    ElementType::kNone,  ElementType::kUint32, ElementType::kUint16};
constexpr int kTypeCount = sizeof(kTypes) / sizeof(kTypes[0]);

class Tflite final : public Engine {
 public:
  explicit Tflite(const Api& api) : api_(api) {}

  ~Tflite() override {
    if (interpreter_ != nullptr) api_.destroy(interpreter_);
    if (model_ != nullptr) api_.model_delete(model_);
  }

  std::string Version() const override {
    const char* version = api_.version();
    return version == nullptr ? "" : version;
  }
  const std::vector<TensorInfo>& inputs() const override { return inputs_; }
  const std::vector<TensorInfo>& outputs() const override { return outputs_; }

  Problem Load(const std::string& model_path, int threads) override {
    model_ = api_.model_create(model_path.c_str());
    if (model_ == nullptr) {
      return "TensorFlow Lite does not read '" + model_path + "'";
    }
    TfLiteInterpreterOptions* options = api_.options_create();
    if (options == nullptr) return "TensorFlow Lite makes no options";
    api_.options_threads(options, threads);
    interpreter_ = api_.create(model_, options);
    api_.options_delete(options);
    if (interpreter_ == nullptr) {
      return "TensorFlow Lite makes no interpreter for the model; its log says "
             "why, often an op or a version of one that it does not have";
    }
    if (api_.allocate(interpreter_) != 0) return kNoMemoryPlan;
    return ReadInterface();
  }

  Problem Feed(std::vector<TensorValue> values) override {
    values_ = std::move(values);
    bool resized = false;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (inputs_[i].dims == values_[i].info.dims) continue;
      const std::vector<int> dims(values_[i].info.dims.begin(),
                                  values_[i].info.dims.end());
      if (api_.resize(interpreter_, static_cast<int32_t>(i), dims.data(),
                      static_cast<int32_t>(dims.size())) != 0) {
        return "TensorFlow Lite does not take the size of input '" +
               inputs_[i].name + "'";
      }
      resized = true;
    }
    if (!resized) return "";
    if (api_.allocate(interpreter_) != 0) return kNoMemoryPlan;
    return ReadInterface();
  }

  // A run may overwrite its inputs.
  Problem Prepare() override {
    for (size_t i = 0; i < values_.size(); ++i) {
      const std::string& bytes = values_[i].bytes;
      TfLiteTensor* input = api_.input(interpreter_, static_cast<int32_t>(i));
      if (input == nullptr ||
          api_.copy_in(input, bytes.data(), bytes.size()) != 0) {
        return "TensorFlow Lite does not take the value of input '" +
               inputs_[i].name + "'";
      }
    }
    return "";
  }

  Problem Run() override {
    if (api_.invoke(interpreter_) == 0) return "";
    return "TensorFlow Lite fails to run the model; its log says why";
  }

  Problem Fetch(std::vector<TensorValue>* values) override {
    values->clear();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      TensorValue& value = values->emplace_back();
      const TfLiteTensor* tensor =
          api_.output(interpreter_, static_cast<int32_t>(i));
      Problem problem = ReadInfo(tensor, &value.info);
      if (!problem.empty()) return problem;
      const int64_t bytes = BytesOf(value.info.type, value.info.dims);
      if (bytes < 0 || static_cast<size_t>(bytes) != api_.bytes(tensor)) {
        return "output '" + value.info.name + "' is too large to compare";
      }
      value.bytes.resize(static_cast<size_t>(bytes));
      if (bytes > 0 &&
          api_.copy_out(tensor, value.bytes.data(), value.bytes.size()) != 0) {
        return "TensorFlow Lite does not hand over output '" + value.info.name +
               "'";
      }
    }
    return "";
  }

 private:
  static constexpr char kNoMemoryPlan[] =
      "TensorFlow Lite does not allocate the model's tensors; its log says why";

  Problem ReadInfo(const TfLiteTensor* tensor, TensorInfo* info) const {
    if (tensor == nullptr) return "TensorFlow Lite does not show a tensor";
    const char* name = api_.name(tensor);
    info->name = name == nullptr ? "" : name;
    const int number = api_.type(tensor);
    if (number >= 0 && number < kTypeCount) info->type = kTypes[number];
    if (info->type == ElementType::kNone) {
      return "'" + info->name + "' has elements of TensorFlow Lite's type " +
             std::to_string(number) + ", which cannot be compared";
    }
    const int32_t rank = api_.rank(tensor);
    if (rank < 0 || rank > static_cast<int32_t>(kMaxRank)) {
      return "'" + info->name + "' has too many dimensions";
    }
    info->dims.clear();
    for (int32_t i = 0; i < rank; ++i) {
      info->dims.push_back(api_.dim(tensor, i) < 0 ? -1 : api_.dim(tensor, i));
    }
    return "";
  }

  Problem ReadInterface() {
    for (const bool input : {true, false}) {
      const int32_t count = input ? api_.input_count(interpreter_)
                                  : api_.output_count(interpreter_);
      if (count < 0 || count > static_cast<int32_t>(kMaxTensors)) {
        return "the model has too many tensors";
      }
      std::vector<TensorInfo>& infos = input ? inputs_ : outputs_;
      infos.assign(static_cast<size_t>(count), TensorInfo());
      for (int32_t i = 0; i < count; ++i) {
        const Problem problem = ReadInfo(
            input ? api_.input(interpreter_, i) : api_.output(interpreter_, i),
            &infos[static_cast<size_t>(i)]);
        if (!problem.empty()) return problem;
      }
    }
    return "";
  }

  const Api api_;
  TfLiteModel* model_ = nullptr;
  TfLiteInterpreter* interpreter_ = nullptr;
  std::vector<TensorInfo> inputs_, outputs_;
  std::vector<TensorValue> values_;
};

}  // namespace

std::unique_ptr<Engine> OpenTflite(const std::string& library,
                                   Problem* problem) {
  Api api = {};
  *problem = FindApi(library, &api);
  if (!problem->empty()) return nullptr;
  return std::make_unique<Tflite>(api);
}

std::unique_ptr<Engine> OpenEngine(const std::string& name,
                                   const std::string& library,
                                   Problem* problem) {
  if (name == "onnxruntime") return OpenOnnxRuntime(library, problem);
  if (name == "tflite") return OpenTflite(library, problem);
  *problem = "there is no engine '" + name + "'; give onnxruntime or tflite";
  return nullptr;
}

}  // namespace optfarm::engine_host
