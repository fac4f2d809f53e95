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
#include "engine/runtime/core/loaded_model.h"
#include "engine/runtime/ukernels/cpu_features.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/engine/runtime/run_op.h"
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
      AddLayer(layer, last, from, to);
      g_.Math(layer + "_relu", "Relu", {layer});
      last = layer + "_relu";
      from = to;
    }
    g_.Const("rows", Tensor::FromValues<int32_t>({2}, {-1, 512}));
    g_.Math("flat", "Reshape", {last, "rows"});
    AddWeights("matrix", {512, 128});
    g_.Math("y", "MatMul", {"flat", "matrix"});
    MapWeights();
    input_ = Tensor::FromValues<float>({1, 6, 6, 64}, Random(6 * 6 * 64));
  }
  // Writes the weights that were added and loads the graph.
  void MapWeights() {
    OPTFARM_ASSERT_OK_AND_ASSIGN(folder_, MakeTemporaryFolder("streamed"));
    const std::string path = JoinPath(folder_, "weights");
    OPTFARM_ASSERT_OK(WriteFileAtomically(path, bytes_));
    OPTFARM_ASSERT_OK_AND_ASSIGN(file_, MappedFile::Open(path));
    OPTFARM_ASSERT_OK_AND_ASSIGN(graph::Graph graph, g_.Graph());
    model_ = LoadedModel::Create(std::move(graph));
  }
  void TearDown() override { (void)RemoveAll(folder_); }

  std::vector<float> Random(int64_t count) {
    std::uniform_real_distribution<float> number(-1.0f, 1.0f);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = number(random_);
    return values;
  }

  void AddLayer(const std::string& name, const std::string& input, int64_t from,
                int64_t to) {
    AddWeights(name + "_filter", {1, 1, from, to});
    g_.Node(name, "Conv2D", {input, name + "_filter"})
        .Type("T", kFloat)
        .Text("padding", "SAME");
    auto* strides = &(*g_.def()
                           ->mutable_node(g_.def()->node_size() - 1)
                           ->mutable_attr())["strides"];
    for (int i = 0; i < 4; ++i) strides->mutable_list()->add_i(1);
  }

  void AddWeights(const std::string& name, const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    const std::vector<float> values = Random(count);
    bytes_.resize((bytes_.size() + kPage - 1) / kPage * kPage + shift_);
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
      SessionOptions options = {}, bool is_mapped = true) {
    options.find_region =
        [file = file_,
         is_mapped](const std::string& name) -> absl::StatusOr<SharedBytes> {
      return SharedBytes{file->bytes().substr(std::stoul(name)), file,
                         is_mapped ? file->bytes() : absl::string_view()};
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

  // UNITS: bytes from a page to where weights begin.
  size_t shift_ = 0;
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

// As in a frozen graph, whose tensors begin at any byte.
class MisalignedWeightsTest : public StreamedWeightsTest {
 protected:
  MisalignedWeightsTest() { shift_ = 7; }
};

TEST_F(MisalignedWeightsTest, GiveTheSameAnswers) {
  // What is no mapped file is copied to where it is aligned.
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto plain,
                               MakeSession(model_, {}, /*is_mapped=*/false));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto wanted, plain->Run({input_}));
  for (const int64_t limit : {int64_t{0}, 2 * weight_bytes_}) {
    for (const int threads : {1, 3}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session, Limited(limit, threads));
      for (int run = 0; run < 2; ++run) {
        OPTFARM_ASSERT_OK_AND_ASSIGN(const auto got, session->Run({input_}));
        ASSERT_EQ(std::memcmp(got[0].raw(), wanted[0].raw(),
                              static_cast<size_t>(wanted[0].TotalBytes())),
                  0)
            << limit << " " << threads << " " << run;
      }
    }
  }
}

TEST_F(MisalignedWeightsTest, AreAlignedForWhoDoesNotPackThem) {
  for (const bool fold : {true, false}) {
    SessionOptions options;
    options.fast_kernels = false;
    options.fold_constants = fold;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto mapped,
                                 MakeSession(model_, options));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto copied,
                                 MakeSession(model_, options, false));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto got, mapped->Run({input_}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto wanted, copied->Run({input_}));
    EXPECT_EQ(got[0].flat<float>(), wanted[0].flat<float>()) << fold;
  }
}

TEST_F(MisalignedWeightsTest, CanBeFetchedAndFolded) {
  g_.Math("twice", "Add", {"matrix", "matrix"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(graph::Graph graph, g_.Graph());
  const auto model = LoadedModel::Create(std::move(graph));
  SessionOptions options;
  options.find_region =
      [this](const std::string& name) -> absl::StatusOr<SharedBytes> {
    return SharedBytes{file_->bytes().substr(std::stoul(name)), file_,
                       file_->bytes()};
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto session,
      Session::Create(model, {}, *graph::ParseTensorNames("matrix,twice"),
                      options));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto got, session->Run({}));
  EXPECT_TRUE(IsAligned(got[0]));
  ASSERT_EQ(got[0].num_elements(), 512 * 128);
  for (int64_t i = 0; i < got[0].num_elements(); ++i) {
    ASSERT_EQ(got[1].data<float>()[i], 2 * got[0].data<float>()[i]);
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

// 35 MiB: two layers of 16 MiB between one of 512 KiB and a product of 2 MiB.
class LargeModelTest : public StreamedWeightsTest {
 protected:
  void SetUp() override {
    constexpr int64_t kWide = 2048;
    g_.Placeholder("x", kFloat);
    AddLayer("narrow", "x", 64, kWide);
    AddLayer("wide", "narrow", kWide, kWide);
    AddLayer("wider", "wide", kWide, kWide);
    g_.Const("rows", Tensor::FromValues<int32_t>({2}, {-1, kWide}));
    g_.Math("flat", "Reshape", {"wider", "rows"});
    AddWeights("matrix", {kWide, kColumns});
    g_.Const("bias", Scattered({kColumns}, 3));
    g_.Math("product", "MatMul", {"flat", "matrix"});
    g_.Math("y", "Add", {"product", "bias"});
    MapWeights();
  }
  static constexpr int64_t kColumns = 300;

  Tensor Image(int64_t size) {
    return Tensor::FromValues<float>({1, size, size, 64},
                                     Random(size * size * 64));
  }
};

TEST_F(LargeModelTest, LeavesWeightsInTheFileWithTheSameAnswers) {
  if (UsedCpuFeatures() == CpuFeatures()) GTEST_SKIP() << "no fast kernels";
  SessionOptions options;
  options.threads = 3;
  OPTFARM_ASSERT_OK_AND_ASSIGN(graph::Graph graph, g_.Graph());
  const auto other = LoadedModel::Create(std::move(graph));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto copied,
                               MakeSession(other, options, false));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto mapped, MakeSession(model_, options));
  // The product's, which may be filled up when they are packed.
  EXPECT_GE(copied->constant_bytes() - mapped->constant_bytes(),
            2048 * kColumns * 4);
  // One row reads the product's weights in place; many have the first layer's
  // streamed, and the product's packed from then on.
  for (const int64_t size : {1, 23, 1}) {
    const Tensor image = Image(size);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto got, mapped->Run({image}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto wanted, copied->Run({image}));
    ASSERT_EQ(got[0].shape(), wanted[0].shape());
    ASSERT_EQ(std::memcmp(got[0].raw(), wanted[0].raw(),
                          static_cast<size_t>(wanted[0].TotalBytes())),
              0)
        << size;
  }
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
