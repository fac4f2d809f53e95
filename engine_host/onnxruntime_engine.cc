// Models in ONNX Runtime, on the processor.

#include <cstring>
#include <utility>

#include "engine_host/engine.h"
#include "engine_host/library.h"
#include "engine_host/onnxruntime_api.h"

namespace optfarm::engine_host {
namespace {

// ONNX's numbers of types, in order.
constexpr ElementType kTypes[] = {
    ElementType::kNone,   ElementType::kFloat,  ElementType::kUint8,
    ElementType::kInt8,   ElementType::kUint16, ElementType::kInt16,
    ElementType::kInt32,  ElementType::kInt64,  ElementType::kNone,
    ElementType::kBool,   ElementType::kHalf,   ElementType::kDouble,
    ElementType::kUint32, ElementType::kUint64};
constexpr int kTypeCount = sizeof(kTypes) / sizeof(kTypes[0]);

ElementType TypeOf(int number) {
  return number >= 0 && number < kTypeCount ? kTypes[number]
                                            : ElementType::kNone;
}

int NumberOf(ElementType type) {
  for (int i = 1; i < kTypeCount; ++i) {
    if (kTypes[i] == type) return i;
  }
  return 0;
}

class OnnxRuntime final : public Engine {
 public:
  OnnxRuntime(const ort::Api* api, std::string version)
      : api_(api), version_(std::move(version)) {}

  ~OnnxRuntime() override {
    ReleaseValues(&results_);
    ReleaseValues(&fed_);
    if (session_ != nullptr) api_->ReleaseSession(session_);
    if (memory_ != nullptr) api_->ReleaseMemoryInfo(memory_);
    if (env_ != nullptr) api_->ReleaseEnv(env_);
  }

  std::string Version() const override { return version_; }
  const std::vector<TensorInfo>& inputs() const override { return inputs_; }
  const std::vector<TensorInfo>& outputs() const override { return outputs_; }

  Problem Load(const std::string& model_path, int threads) override {
    Problem problem = Told(api_->CreateEnv(ort::kLogErrors, "optfarm", &env_));
    if (!problem.empty()) return problem;
    ort::SessionOptions* options = nullptr;
    problem = Told(api_->CreateSessionOptions(&options));
    if (!problem.empty()) return problem;
    problem = SetOptions(threads, options);
    if (problem.empty()) {
      problem = Told(
          api_->CreateSession(env_, model_path.c_str(), options, &session_));
    }
    api_->ReleaseSessionOptions(options);
    if (!problem.empty()) return problem;
    problem = Told(api_->CreateCpuMemoryInfo(ort::kDeviceAllocator,
                                             ort::kDefaultMemory, &memory_));
    return problem.empty() ? ReadInterface() : problem;
  }

  Problem Feed(std::vector<TensorValue> values) override {
    ReleaseValues(&fed_);
    values_ = std::move(values);
    for (TensorValue& value : values_) {
      ort::Value* made = nullptr;
      const Problem problem = Told(api_->CreateTensorWithDataAsOrtValue(
          memory_, value.bytes.data(), value.bytes.size(),
          value.info.dims.data(), value.info.dims.size(),
          NumberOf(value.info.type), &made));
      if (!problem.empty()) return problem;
      fed_.push_back(made);
    }
    return "";
  }

  Problem Prepare() override {
    ReleaseValues(&results_);
    results_.assign(outputs_.size(), nullptr);
    return "";
  }

  Problem Run() override {
    return Told(api_->Run(session_, nullptr, input_names_.data(), fed_.data(),
                          fed_.size(), output_names_.data(),
                          output_names_.size(), results_.data()));
  }

  Problem Fetch(std::vector<TensorValue>* values) override {
    values->clear();
    for (size_t i = 0; i < results_.size(); ++i) {
      Problem problem =
          Read(results_[i], outputs_[i].name, &values->emplace_back());
      if (!problem.empty()) return problem;
    }
    return "";
  }

 private:
  Problem Told(ort::Status* status) const {
    if (status == nullptr) return "";
    const Problem problem = api_->GetErrorMessage(status);
    api_->ReleaseStatus(status);
    return problem.empty() ? "ONNX Runtime gives no reason" : problem;
  }

  void ReleaseValues(std::vector<ort::Value*>* values) {
    for (ort::Value* value : *values) {
      if (value != nullptr) api_->ReleaseValue(value);
    }
    values->clear();
  }

  Problem SetOptions(int threads, ort::SessionOptions* options) const {
    Problem problem = Told(api_->SetIntraOpNumThreads(options, threads));
    if (problem.empty()) {
      problem = Told(api_->SetInterOpNumThreads(options, 1));
    }
    if (problem.empty()) {
      problem = Told(api_->SetSessionGraphOptimizationLevel(
          options, ort::kAllOptimizations));
    }
    // Threads that wait busily for the next run would disturb the other
    // variants. Versions that do not know it leave it.
    if (problem.empty()) {
      problem = Told(api_->AddSessionConfigEntry(
          options, "session.force_spinning_stop", "1"));
    }
    return problem;
  }

  // Of a type that is a tensor's; a sequence or a map has none.
  Problem ReadShape(const ort::TensorShape* shape, TensorInfo* info) const {
    if (shape == nullptr) return "'" + info->name + "' is no tensor";
    int number = 0;
    size_t rank = 0;
    Problem problem = Told(api_->GetTensorElementType(shape, &number));
    if (problem.empty()) problem = Told(api_->GetDimensionsCount(shape, &rank));
    if (!problem.empty()) return problem;
    if (rank > kMaxRank) return "'" + info->name + "' has too many dimensions";
    info->type = TypeOf(number);
    if (info->type == ElementType::kNone) {
      return "'" + info->name + "' has elements of ONNX's type " +
             std::to_string(number) + ", which cannot be compared";
    }
    info->dims.assign(rank, -1);
    problem = Told(api_->GetDimensions(shape, info->dims.data(), rank));
    for (int64_t& dim : info->dims) dim = dim < 0 ? -1 : dim;
    return problem;
  }

  Problem ReadInfo(bool input, size_t index, ort::Allocator* allocator,
                   TensorInfo* info) const {
    char* name = nullptr;
    Problem problem = Told(
        input ? api_->SessionGetInputName(session_, index, allocator, &name)
              : api_->SessionGetOutputName(session_, index, allocator, &name));
    if (!problem.empty()) return problem;
    info->name = name;
    problem = Told(api_->AllocatorFree(allocator, name));
    ort::TypeInfo* type = nullptr;
    if (problem.empty()) {
      problem =
          Told(input ? api_->SessionGetInputTypeInfo(session_, index, &type)
                     : api_->SessionGetOutputTypeInfo(session_, index, &type));
    }
    if (!problem.empty()) return problem;
    const ort::TensorShape* shape = nullptr;
    problem = Told(api_->CastTypeInfoToTensorInfo(type, &shape));
    if (problem.empty()) problem = ReadShape(shape, info);
    api_->ReleaseTypeInfo(type);
    return problem;
  }

  Problem ReadInterface() {
    ort::Allocator* allocator = nullptr;
    Problem problem = Told(api_->GetAllocatorWithDefaultOptions(&allocator));
    for (const bool input : {true, false}) {
      size_t count = 0;
      if (problem.empty()) {
        problem = Told(input ? api_->SessionGetInputCount(session_, &count)
                             : api_->SessionGetOutputCount(session_, &count));
      }
      if (!problem.empty()) return problem;
      if (count > kMaxTensors) return "the model has too many tensors";
      std::vector<TensorInfo>& infos = input ? inputs_ : outputs_;
      infos.resize(count);
      for (size_t i = 0; i < count; ++i) {
        problem = ReadInfo(input, i, allocator, &infos[i]);
        if (!problem.empty()) return problem;
      }
      std::vector<const char*>& names = input ? input_names_ : output_names_;
      for (const TensorInfo& info : infos) names.push_back(info.name.c_str());
    }
    return problem;
  }

  Problem Read(ort::Value* value, const std::string& name,
               TensorValue* read) const {
    read->info.name = name;
    int is_tensor = 0;
    if (value == nullptr) return "output '" + name + "' has no value";
    Problem problem = Told(api_->IsTensor(value, &is_tensor));
    if (!problem.empty()) return problem;
    if (is_tensor == 0) return "output '" + name + "' is no tensor";
    ort::TensorShape* shape = nullptr;
    problem = Told(api_->GetTensorTypeAndShape(value, &shape));
    if (!problem.empty()) return problem;
    problem = ReadShape(shape, &read->info);
    api_->ReleaseTensorTypeAndShapeInfo(shape);
    if (!problem.empty()) return problem;
    const int64_t bytes = BytesOf(read->info.type, read->info.dims);
    if (bytes < 0) return "output '" + name + "' is too large to compare";
    void* data = nullptr;
    problem = Told(api_->GetTensorMutableData(value, &data));
    if (!problem.empty()) return problem;
    if (bytes > 0) {
      read->bytes.assign(static_cast<const char*>(data),
                         static_cast<size_t>(bytes));
    }
    return "";
  }

  const ort::Api* const api_;
  const std::string version_;
  ort::Env* env_ = nullptr;
  ort::Session* session_ = nullptr;
  ort::MemoryInfo* memory_ = nullptr;
  std::vector<TensorInfo> inputs_, outputs_;
  std::vector<const char*> input_names_, output_names_;
  // What `fed_` points into.
  std::vector<TensorValue> values_;
  std::vector<ort::Value*> fed_, results_;
};

}  // namespace

std::unique_ptr<Engine> OpenOnnxRuntime(const std::string& library,
                                        Problem* problem) {
  Library file;
  *problem = file.Open(library);
  if (!problem->empty()) return nullptr;
  const ort::ApiBase* (*get_base)() = nullptr;
  file.Find("OrtGetApiBase", &get_base);
  *problem = file.Missing();
  if (!problem->empty()) return nullptr;
  const ort::ApiBase* base = get_base();
  const ort::Api* api =
      base == nullptr ? nullptr : base->GetApi(ort::kApiVersion);
  if (api == nullptr) {
    *problem = "'" + library +
               "' does not have version 5 of ONNX Runtime's C API; use ONNX "
               "Runtime 1.5 or newer";
    return nullptr;
  }
  const char* version = base->GetVersionString();
  return std::make_unique<OnnxRuntime>(api, version == nullptr ? "" : version);
}

}  // namespace optfarm::engine_host
