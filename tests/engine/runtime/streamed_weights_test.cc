// Weights in a mapped file that runs pack when they come to them, and what a
// run of such a model takes.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/runtime/fast/cpu_features.h"
#include "engine/runtime/loaded_model.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

constexpr DataType kFloat = tensorflow::DT_FLOAT;
// UNITS: bytes. Regions begin at pages, as SharedWeights lets whole ones go.
constexpr size_t kPage = 4096;

// Layers of 1x1 convolutions from 64 channels to 512 and a product, whose
// weights are in one mapped file: 16, 32, 128, 512 and 256 KiB.
class StreamedWeightsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_.Placeholder("x", kFloat);
    int64_t from = 64;
    std::string last = "x";
    for (const int64_t to : {64, 128, 256, 512}) {
      const std::string layer = absl::StrCat("layer", to);
      AddWeights(layer + "_filter", {1, 1, from, to});
      g_.Node(layer, "Conv2D", {last, layer + "_filter"})
          .Type("T", kFloat)
          .Text("padding", "SAME");
      auto* strides = &(*g_.def()
                             ->mutable_node(g_.def()->node_size() - 1)
                             ->mutable_attr())["strides"];
      for (int i = 0; i < 4; ++i) strides->mutable_list()->add_i(1);
      g_.Math(layer + "_relu", "Relu", {layer});
      last = layer + "_relu";
      from = to;
    }
    g_.Const("rows", Tensor::FromValues<int32_t>({2}, {-1, 512}));
    g_.Math("flat", "Reshape", {last, "rows"});
    AddWeights("matrix", {512, 128});
    g_.Math("y", "MatMul", {"flat", "matrix"});
    OPTFARM_ASSERT_OK_AND_ASSIGN(folder_, MakeTemporaryFolder("streamed"));
    const std::string path = JoinPath(folder_, "weights");
    OPTFARM_ASSERT_OK(WriteFileAtomically(path, bytes_));
    OPTFARM_ASSERT_OK_AND_ASSIGN(file_, MappedFile::Open(path));
    OPTFARM_ASSERT_OK_AND_ASSIGN(graph::Graph graph, g_.Graph());
    model_ = LoadedModel::Create(std::move(graph));
    input_ = Tensor::FromValues<float>({1, 6, 6, 64}, Random(6 * 6 * 64));
  }
  void TearDown() override { (void)RemoveAll(folder_); }

  std::vector<float> Random(int64_t count) {
    std::uniform_real_distribution<float> number(-1.0f, 1.0f);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = number(random_);
    return values;
  }

  void AddWeights(const std::string& name, const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    const std::vector<float> values = Random(count);
    bytes_.resize((bytes_.size() + kPage - 1) / kPage * kPage);
    g_.Node(name, "ImmutableConst")
        .Type("dtype", kFloat)
        .Shape("shape", dims)
        .Text("memory_region_name", absl::StrCat(bytes_.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()),
                  values.size() * sizeof(float));
    weight_bytes_ += count * static_cast<int64_t>(sizeof(float));
  }

  absl::StatusOr<std::unique_ptr<Session>> MakeSession(
      const std::shared_ptr<const LoadedModel>& model,
      SessionOptions options = {}) {
    options.find_region =
        [file = file_](const std::string& name) -> absl::StatusOr<SharedBytes> {
      return SharedBytes{file->bytes().substr(std::stoul(name)), file, true};
    };
    return Session::Create(model, *graph::ParseTensorNames("x"),
                           *graph::ParseTensorNames("y"), options);
  }
  absl::StatusOr<std::unique_ptr<Session>> Limited(int64_t limit,
                                                   int threads = 1) {
    SessionOptions options;
    options.packed_weights_limit = limit;
    options.threads = threads;
    OPTFARM_ASSIGN_OR_RETURN(graph::Graph graph, g_.Graph());
    return MakeSession(LoadedModel::Create(std::move(graph)), options);
  }
  // The most that the tensors of a session's later runs take.
  int64_t PeakOf(const Session& session) {
    RunTrace trace;
    for (int i = 0; i < 3; ++i) {
      trace = {};
      const auto results = session.Run({input_}, &trace);
      EXPECT_TRUE(results.ok()) << results.status();
    }
    return trace.peak_bytes;
  }

  std::mt19937 random_{7};
  GraphMaker g_;
  std::string bytes_;
  int64_t weight_bytes_ = 0;
  std::string folder_;
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const LoadedModel> model_;
  Tensor input_;
};

TEST_F(StreamedWeightsTest, GiveTheSameAnswers) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto plain, MakeSession(model_));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto wanted, plain->Run({input_}));
  for (const int64_t limit : {0, 200'000, 700'000}) {
    for (const int threads : {1, 3}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, Limited(limit, threads));
      for (int run = 0; run < 3; ++run) {
        OPTFARM_ASSERT_OK_AND_ASSIGN(const auto got, session->Run({input_}));
        ASSERT_EQ(std::memcmp(got[0].raw(), wanted[0].raw(),
                              static_cast<size_t>(wanted[0].TotalBytes())),
                  0)
            << limit << " " << threads << " " << run;
      }
    }
  }
}

TEST_F(StreamedWeightsTest, TheSmallestAreStreamedUntilTheRestFits) {
  if (UsedCpuFeatures() == CpuFeatures()) GTEST_SKIP() << "no fast kernels";
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto all, Limited(weight_bytes_));
  EXPECT_GE(all->constant_bytes(), weight_bytes_);
  const int64_t beside = all->constant_bytes() - weight_bytes_;
  // 16 and 32 KiB go; 128 KiB are the next.
  constexpr int64_t kKibi = 1024;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto most,
                               Limited(weight_bytes_ - 16 * kKibi));
  EXPECT_EQ(most->constant_bytes(), beside + weight_bytes_ - 48 * kKibi);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto none, Limited(0));
  EXPECT_EQ(none->constant_bytes(), beside);
}

TEST_F(StreamedWeightsTest, ARunOfAMappedModelTakesItsWeightsOnce) {
  SessionOptions scattered;
  scattered.plan_memory = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto unplanned,
                               MakeSession(model_, scattered));
  const int64_t live = PeakOf(*unplanned);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto planned, MakeSession(model_));
  const auto file = static_cast<int64_t>(file_->bytes().size());
  EXPECT_LE(planned->constant_bytes() + PeakOf(*planned),
            file + live + live * 3 / 10);
  // Without any that are kept, a run takes its largest weights and what lives
  // beside them.
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto streamed, Limited(0));
  EXPECT_LE(streamed->constant_bytes() + PeakOf(*streamed),
            file * 6 / 10 + live + live * 3 / 10);
}

TEST_F(StreamedWeightsTest, ManyThreadsMayStreamAtOnce) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, Limited(200'000));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto wanted, session->Run({input_}));
  std::vector<int> same(8, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      const auto got = session->Run({input_});
      same[t] = got.ok() &&
                std::memcmp((*got)[0].raw(), wanted[0].raw(),
                            static_cast<size_t>(wanted[0].TotalBytes())) == 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(same.size(), 1));
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
