// The C++ API and, through it, the C API, as an app uses them.

#include "engine/api/runtime.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "engine/formats/tensorflow/encrypted_model.h"
#include "engine/formats/tensorflow/memmapped_package.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = x * 2 for any batch of 3 numbers; the type of `s` is string.
constexpr char kGraph[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } }
node { name: "two" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape {} float_val: 2 } } } }
node { name: "y" op: "Mul" input: "x" input: "two"
  attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 24 }
)";

// Gives back a string.
constexpr char kStringGraph[] = R"(
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_STRING } } }
node { name: "y" op: "Identity" input: "x"
  attr { key: "T" value { type: DT_STRING } } }
versions { producer: 24 }
)";

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Model LoadOrDie(std::string_view text) {
  Result<Model> model = Model::LoadMemory(Bytes(text));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

Tensor Floats(const std::vector<float>& values, std::vector<int64_t> dims) {
  Result<Tensor> made = Tensor::Copy<float>(values, dims);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

TEST(RuntimeApiTest, VersionsAreTheHeaders) {
  EXPECT_EQ(optfarm_api_version(), OPTFARM_API_VERSION);
  EXPECT_THAT(optfarm_version(), HasSubstr("."));
}

TEST(RuntimeApiTest, ModelTellsItsInputsAndOutputs) {
  const Model model = LoadOrDie(kGraph);
  const auto inputs = model.Inputs();
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  ASSERT_EQ(inputs->size(), 1u);
  EXPECT_EQ((*inputs)[0].name, "x");
  EXPECT_EQ((*inputs)[0].dtype, OPTFARM_FLOAT);
  EXPECT_THAT((*inputs)[0].dims.value(), ElementsAre(-1, 3));
  const auto outputs = model.Outputs();
  ASSERT_TRUE(outputs.ok());
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_EQ((*outputs)[0].name, "y");
}

// Weights are taken out of the graph; their shapes are still known.
TEST(RuntimeApiTest, OutputShapesFollowFromLargeWeights) {
  tensorflow::GraphDef def;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    node { name: "x" op: "Placeholder"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: 1 }
                                          dim { size: 100 } } } } }
    node { name: "w" op: "Const"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 1
        tensor_shape { dim { size: 100 } dim { size: 70 } } } } } }
    node { name: "y" op: "MatMul" input: "x" input: "w"
      attr { key: "T" value { type: DT_FLOAT } } })",
                                                            &def));
  const Model model = LoadOrDie(def.SerializeAsString());
  const auto outputs = model.Outputs();
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_THAT((*outputs)[0].dims.value(), ElementsAre(1, 70));
  const auto session = Session::Create(model);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto run = session->Run(Floats(std::vector<float>(100, 1), {1, 100}));
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ((*run)[0].data<float>()[69], 100);
}

TEST(RuntimeApiTest, SessionOutlivesItsModelAndTensorsTheirSession) {
  std::vector<Tensor> outputs;
  {
    Result<Session> session = Session::Create(LoadOrDie(kGraph));
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_THAT(session->input_names(), ElementsAre("x"));
    EXPECT_THAT(session->output_names(), ElementsAre("y"));
    auto run = session->Run(Floats({1, 2, 3}, {1, 3}));
    ASSERT_TRUE(run.ok()) << run.status().message();
    outputs = *std::move(run);
  }
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(outputs[0].dims(), ElementsAre(1, 3));
  EXPECT_THAT(outputs[0].data<float>(), ElementsAre(2, 4, 6));
  EXPECT_TRUE(outputs[0].data<int32_t>().empty());
  ASSERT_EQ(outputs[0].mutable_data<float>().size(), 3u);
  outputs[0].mutable_data<float>()[0] = 7;
  EXPECT_EQ(outputs[0].data<float>()[0], 7);
}

TEST(RuntimeApiTest, AnyTensorMayBeFedOrFetched) {
  Result<Session> session = Session::Create(LoadOrDie(kGraph), {"x", "two:0"},
                                            {"y", "two"}, {.threads = 2});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<Tensor> feeds;
  feeds.push_back(Floats({1, 1, 1}, {1, 3}));
  feeds.push_back(Floats({5}, {}));
  const auto outputs = session->Run(feeds);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_THAT((*outputs)[0].data<float>(), ElementsAre(5, 5, 5));
  EXPECT_THAT((*outputs)[1].data<float>(), ElementsAre(5));
}

TEST(RuntimeApiTest, ManyThreadsRunOneSession) {
  const Result<Session> session = Session::Create(LoadOrDie(kGraph));
  ASSERT_TRUE(session.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&session, t] {
      const auto value = static_cast<float>(t);
      for (int i = 0; i < 20; ++i) {
        const auto outputs =
            session->Run(Floats({value, value, value}, {1, 3}));
        ASSERT_TRUE(outputs.ok());
        EXPECT_EQ((*outputs)[0].data<float>()[2], 2 * value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RuntimeApiTest, ProfileIsJsonOfTheNodes) {
  const Result<Session> session = Session::Create(LoadOrDie(kGraph));
  ASSERT_TRUE(session.ok());
  std::string profile;
  ASSERT_TRUE(
      session->Run(Floats({1, 2, 3}, {1, 3}), {.profile_json = &profile}).ok());
  EXPECT_THAT(profile, HasSubstr("{\"name\":\"y\",\"op\":\"Mul\","));
  EXPECT_THAT(profile,
              HasSubstr("\"outputs\":[{\"dtype\":\"float\",\"shape\":[1,3]}]"));
}

TEST(RuntimeApiTest, CancelTokenEndsRunsUntilItIsReset) {
  const Result<Session> session = Session::Create(LoadOrDie(kGraph));
  ASSERT_TRUE(session.ok());
  const Result<CancelToken> cancel = CancelToken::Create();
  ASSERT_TRUE(cancel.ok());
  const RunOptions options = {.cancel = &*cancel};
  cancel->Set();
  EXPECT_EQ(session->Run(Floats({1, 2, 3}, {1, 3}), options).status().code(),
            OPTFARM_CANCELLED);
  cancel->Reset();
  EXPECT_TRUE(session->Run(Floats({1, 2, 3}, {1, 3}), options).ok());
}

TEST(RuntimeApiTest, MemoryLimitEndsARun) {
  const Model model = LoadOrDie(kGraph);
  const Result<Session> session = Session::Create(model);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const Tensor input = Floats(std::vector<float>(300, 1), {100, 3});
  EXPECT_EQ(session->Run(input, {.memory_limit_bytes = 100}).status().code(),
            OPTFARM_RESOURCE_EXHAUSTED);
  EXPECT_TRUE(session->Run(input, {.memory_limit_bytes = 1 << 20}).ok());
}

TEST(RuntimeApiTest, SessionsShareThreadsAndKeepThem) {
  std::vector<Session> sessions;
  {
    const int32_t processors[] = {0};
    Result<ThreadPool> pool = ThreadPool::Create(2, processors);
    if (!pool.ok()) pool = ThreadPool::Create(2);  // No processor 0 for us.
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    const Model model = LoadOrDie(kGraph);
    for (int i = 0; i < 2; ++i) {
      auto session = Session::Create(model, {}, {}, {.thread_pool = &*pool});
      ASSERT_TRUE(session.ok());
      sessions.push_back(*std::move(session));
    }
  }
  for (const Session& session : sessions) {
    EXPECT_TRUE(session.Run(Floats({1, 2, 3}, {1, 3})).ok());
  }
  EXPECT_EQ(ThreadPool::Create(0).status().code(), OPTFARM_INVALID_ARGUMENT);
  const int32_t none[] = {-1};
  EXPECT_EQ(ThreadPool::Create(2, none).status().code(),
            OPTFARM_INVALID_ARGUMENT);
}

TEST(RuntimeApiTest, TimeLimitsAreChecked) {
  const Result<Session> session = Session::Create(LoadOrDie(kGraph));
  ASSERT_TRUE(session.ok());
  const Tensor input = Floats({1, 2, 3}, {1, 3});
  EXPECT_TRUE(session->Run(input, {.time_limit = std::chrono::hours(1)}).ok());
  EXPECT_EQ(session->Run(input, {.time_limit = std::chrono::microseconds(-1)})
                .status()
                .code(),
            OPTFARM_INVALID_ARGUMENT);
}

TEST(RuntimeApiTest, ErrorsSayWhatIsWrong) {
  const auto missing = Model::Load("/does/not/exist.pb");
  EXPECT_EQ(missing.status().code(), OPTFARM_NOT_FOUND);
  EXPECT_THAT(missing.status().message(), HasSubstr("/does/not/exist.pb"));
  EXPECT_EQ(Model::LoadMemory(Bytes("no model")).status().code(),
            OPTFARM_INVALID_ARGUMENT);
  const Model model = LoadOrDie(kGraph);
  EXPECT_EQ(Session::Create(model, {"x"}, {"z"}).status().code(),
            OPTFARM_NOT_FOUND);
  EXPECT_EQ(Session::Create(model, {}, {}, {.threads = 0}).status().code(),
            OPTFARM_INVALID_ARGUMENT);
  const auto session = Session::Create(model);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->Run(std::span<const Tensor>()).status().code(),
            OPTFARM_INVALID_ARGUMENT);
  const auto doubles = Tensor::Zeros(OPTFARM_DOUBLE, {});
  ASSERT_TRUE(doubles.ok());
  EXPECT_THAT(session->Run(*doubles).status().message(), HasSubstr("double"));
}

TEST(ModelFilesTest, DamagedModelsGiveStatuses) {
  tensorflow::GraphDef def;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kGraph, &def));
  const std::string whole = def.SerializeAsString();
  const Tensor input = Floats({1, 2, 3}, {1, 3});
  const RunOptions limits = {.time_limit = std::chrono::seconds(5),
                             .memory_limit_bytes = 1 << 20};
  std::mt19937 random(7);
  int loaded = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole.substr(0, i % 4 ? whole.size() : i / 4 % 150);
    for (int k = 0; k < 1 + i % 3 && !bytes.empty(); ++k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto model = Model::LoadMemory(Bytes(bytes));
    if (!model.ok()) continue;
    const auto session = Session::Create(*model, {"x"}, {"y"});
    if (!session.ok()) continue;
    ++loaded;
    const auto outputs = session->Run(input, limits);
    if (!outputs.ok()) {
      EXPECT_NE(outputs.status().message(), "");
    }
  }
  EXPECT_GT(loaded, 0);
}

// A package's constants lie in the file; the file may be encrypted besides.
TEST(ModelFilesTest, PackagesAndEncryptedModelsLoadLikeAny) {
  tensorflow::GraphDef def;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kGraph, &def));
  const auto package = formats::SerializeMemmapped(def, 1);
  OPTFARM_ASSERT_OK(package);
  EXPECT_EQ(package->converted_nodes, 1);
  const std::string key(32, 'k');
  const auto sealed = formats::EncryptModel(package->bytes, AeadKey(key));
  OPTFARM_ASSERT_OK(sealed);
  const std::string folder = optfarm::testing::FreshFolder();
  const std::string mapped = JoinPath(folder, "m.mmap");
  const std::string encrypted = JoinPath(folder, "m.enc");
  OPTFARM_ASSERT_OK(WriteFileAtomically(mapped, package->bytes));
  OPTFARM_ASSERT_OK(WriteFileAtomically(encrypted, *sealed));
  const ModelOptions with_key = {.key = Bytes(key)};
  Result<Model> models[] = {Model::Load(mapped),
                            Model::LoadMemory(Bytes(package->bytes)),
                            Model::Load(encrypted, with_key),
                            Model::LoadMemory(Bytes(*sealed), with_key)};
  for (const Result<Model>& model : models) {
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto session = Session::Create(*model);
    ASSERT_TRUE(session.ok()) << session.status().message();
    const auto outputs = session->Run(Floats({1, 2, 3}, {1, 3}));
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_THAT((*outputs)[0].data<float>(), ElementsAre(2, 4, 6));
  }
  const std::string wrong(32, 'w');
  EXPECT_EQ(Model::Load(encrypted, {.key = Bytes(wrong)}).status().code(),
            OPTFARM_DATA_LOSS);
  EXPECT_EQ(Model::Load(encrypted, {.key = Bytes("short")}).status().code(),
            OPTFARM_INVALID_ARGUMENT);
}

TEST(TensorApiTest, MemoryMustFitTheShape) {
  const float values[] = {1, 2};
  const int64_t dims[] = {3};
  EXPECT_THAT(Tensor::Copy<float>(values, dims).status().message(),
              HasSubstr("8 bytes for a float tensor of shape [3]"));
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_FALSE(Tensor::Zeros(OPTFARM_FLOAT, huge).ok());
  const int64_t large[] = {int64_t{1} << 60};
  EXPECT_EQ(Tensor::Zeros(OPTFARM_FLOAT, large).status().code(),
            OPTFARM_RESOURCE_EXHAUSTED);
  const int64_t negative[] = {-1};
  EXPECT_EQ(Tensor::Zeros(OPTFARM_FLOAT, negative).status().code(),
            OPTFARM_INVALID_ARGUMENT);
  EXPECT_EQ(Tensor::Zeros(static_cast<optfarm_dtype>(31), {}).status().code(),
            OPTFARM_INVALID_ARGUMENT);
}

// Counts how often memory was given back.
void CountRelease(void* context) { ++*static_cast<int*>(context); }

TEST(TensorApiTest, BorrowedMemoryIsReadInPlaceAndGivenBackOnce) {
  alignas(64) static float memory[3] = {1, 2, 3};
  const int64_t dims[] = {1, 3};
  int released = 0;
  {
    Result<Tensor> tensor =
        Tensor::Borrow<float>(memory, dims, CountRelease, &released);
    ASSERT_TRUE(tensor.ok());
    EXPECT_EQ(static_cast<const void*>(tensor->bytes().data()), memory);
    EXPECT_TRUE(tensor->mutable_data<float>().empty());
    const auto session = Session::Create(LoadOrDie(kGraph));
    ASSERT_TRUE(session.ok());
    const auto outputs = session->Run(*tensor);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_THAT((*outputs)[0].data<float>(), ElementsAre(2, 4, 6));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(memory[0], 1);
}

TEST(TensorApiTest, UnalignedMemoryIsCopiedAndErrorsKeepIt) {
  alignas(64) static float memory[4] = {0, 1, 2, 3};
  const int64_t dims[] = {3};
  int released = 0;
  const auto values = std::span<const float>(memory).subspan(1);
  const auto tensor =
      Tensor::Borrow<float>(values, dims, CountRelease, &released);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(released, 1);
  EXPECT_THAT(tensor->data<float>(), ElementsAre(1, 2, 3));
  const int64_t wrong[] = {4};
  EXPECT_FALSE(
      Tensor::Borrow<float>(values, wrong, CountRelease, &released).ok());
  EXPECT_EQ(released, 1);
}

TEST(TensorApiTest, StringsGoThrough) {
  const std::string_view texts[] = {"one", std::string_view("a\0b", 3), ""};
  const int64_t dims[] = {3};
  const auto tensor = Tensor::Strings(texts, dims);
  ASSERT_TRUE(tensor.ok());
  EXPECT_TRUE(tensor->bytes().empty());
  const auto session = Session::Create(LoadOrDie(kStringGraph), {"x"}, {"y"});
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto outputs = session->Run(*tensor);
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ(*(*outputs)[0].string(1), std::string_view("a\0b", 3));
  EXPECT_EQ((*outputs)[0].string(3).status().code(), OPTFARM_OUT_OF_RANGE);
  EXPECT_FALSE(Floats({1}, {1}).string(0).ok());
}

}  // namespace
}  // namespace optfarm::api
