// Checkpoints, SavedModels, packages and encrypted models through optctl and
// the links with TensorFlow's names.

#include <gmock/gmock.h>

#include <cstring>
#include <map>

#include "engine/formats/files/crc32c.h"
#include "engine/formats/samples/npy.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tensorflow/core/protobuf/tensor_bundle.pb.h"
#include "tests/client_cli/tool_test.h"
#include "tests/fuzz/table_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// sum = x + w, w a variable of two floats.
constexpr char kModel[] = R"(
  node { name: "x" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: 1 } dim { size: 2 } } } } }
  node { name: "w" op: "VariableV2"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: 2 } } } } }
  node { name: "w/read" op: "Identity" input: "w"
    attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "sum" op: "Add" input: "x" input: "w/read"
    attr { key: "T" value { type: DT_FLOAT } } }
)";

std::string Floats(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

class ModelFilesTest : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    model_ = Write("model.pbtxt", kModel);
    WriteCheckpoint(Path("ckpt"));
    tensorflow::TensorProto x;
    x.set_dtype(tensorflow::DT_FLOAT);
    x.mutable_tensor_shape()->add_dim()->set_size(1);
    x.mutable_tensor_shape()->add_dim()->set_size(2);
    x.set_tensor_content(Floats({10, 20}));
    EXPECT_THAT(formats::SaveNpy(x, Path("x.npy")), IsOk());
  }

  // A V2 checkpoint with w = [1, 2].
  static void WriteCheckpoint(const std::string& prefix) {
    const std::string data = Floats({1, 2});
    tensorflow::BundleHeaderProto header;
    header.set_num_shards(1);
    tensorflow::BundleEntryProto entry;
    entry.set_dtype(tensorflow::DT_FLOAT);
    entry.mutable_shape()->add_dim()->set_size(2);
    entry.set_size(static_cast<int64_t>(data.size()));
    entry.set_crc32c(formats::MaskCrc(formats::Crc32c(data)));
    const std::map<std::string, std::string> entries = {
        {"", header.SerializeAsString()}, {"w", entry.SerializeAsString()}};
    EXPECT_THAT(
        WriteFileAtomically(prefix + ".index", testing::TableOf(entries)),
        IsOk());
    EXPECT_THAT(WriteFileAtomically(prefix + ".data-00000-of-00001", data),
                IsOk());
  }

  // A SavedModel whose signature calls the ends "in" and "out".
  std::string WriteSavedModel() const {
    tensorflow::SavedModel model;
    model.set_saved_model_schema_version(1);
    tensorflow::MetaGraphDef* meta = model.add_meta_graphs();
    meta->mutable_meta_info_def()->add_tags("serve");
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        kModel, meta->mutable_graph_def()));
    auto& signature = (*meta->mutable_signature_def())["serving_default"];
    (*signature.mutable_inputs())["in"].set_name("x:0");
    (*signature.mutable_outputs())["out"].set_name("sum:0");
    EXPECT_THAT(MakeFolders(Path("export/variables")), IsOk());
    Write("export/saved_model.pb", model.SerializeAsString());
    WriteCheckpoint(Path("export/variables/variables"));
    return Path("export");
  }

  std::string FrozenModel() {
    EXPECT_EQ(
        Run("freeze_graph", {"--input_graph", model_, "--input_checkpoint",
                             Path("ckpt"), "--output_graph", Path("frozen.pb"),
                             "--output_node_names", "sum"}),
        0)
        << output_;
    return Path("frozen.pb");
  }

  // What `sum` is for x = [10, 20].
  std::vector<float> SumOf(const std::string& graph) {
    EXPECT_EQ(Run("optctl", {"graph", "run", "--in_graph=" + graph,
                             "--input=x=" + Path("x.npy"), "--output=sum",
                             "--out_dir=" + Path("out")}),
              0)
        << output_;
    const auto sum = formats::LoadNpy(Path("out/sum.npy"));
    EXPECT_THAT(sum, IsOk());
    std::vector<float> values(2);
    if (sum.ok() && sum->tensor_content().size() == 8) {
      std::memcpy(values.data(), sum->tensor_content().data(), 8);
    }
    return values;
  }

  std::string model_;
  const std::vector<float> sum_ = {11, 22};
};

TEST_F(ModelFilesTest, FreezeGraphFreezes) {
  const std::string frozen = FrozenModel();
  EXPECT_EQ(output_,
            "Froze 1 variables.\nConverted 1 variables to const ops.\n"
            "4 ops in the final graph.\n");
  EXPECT_EQ(SumOf(frozen), sum_);
}

TEST_F(ModelFilesTest, FreezeGraphTakesSavedModels) {
  EXPECT_EQ(
      Run("optctl",
          {"graph", "freeze", "--input_saved_model_dir=" + WriteSavedModel(),
           "--output_graph=" + Path("f.pb"), "--output_node_names=sum"}),
      0)
      << output_;
  EXPECT_EQ(SumOf(Path("f.pb")), sum_);
}

TEST_F(ModelFilesTest, FreezeSaysWhatIsWrongWithTheFlags) {
  const std::string out = "--output_graph=" + Path("f.pb");
  const std::string names = "--output_node_names=sum";
  const std::string graph = "--input_graph=" + model_;
  const std::string checkpoint = "--input_checkpoint=" + Path("ckpt");
  const std::string saved = "--input_saved_model_dir=" + WriteSavedModel();
  const struct {
    std::vector<std::string> flags;
    const char* says;
  } kCases[] = {
      {{out, names}, "what to freeze?"},
      {{out, names, graph}, "give --input_checkpoint too"},
      {{out, graph, checkpoint}, "--output_node_names is needed"},
      {{out, names, graph, saved}, "exclude one another"},
      {{out, names, saved, checkpoint}, "has its own variables"},
      {{names, graph, checkpoint}, "--output_graph"},
      {{out, names, graph, "--input_checkpoint=" + Path("none")},
       "there is no checkpoint"},
      {{out, "--output_node_names=summ", graph, checkpoint}, "'sum'"},
      {{out, names, saved, "--saved_model_tags=train"}, "{serve}"},
      {{out, names, graph, checkpoint, "--stored_names=w"}, "VARIABLE=TENSOR"},
  };
  for (const auto& test : kCases) {
    std::vector<std::string> words = {"graph", "freeze"};
    words.insert(words.end(), test.flags.begin(), test.flags.end());
    EXPECT_NE(Run("optctl", words), 0);
    EXPECT_THAT(output_, HasSubstr(test.says));
    EXPECT_FALSE(Exists(Path("f.pb")));
  }
}

TEST_F(ModelFilesTest, InspectCheckpointPrintsNamesAndValues) {
  EXPECT_EQ(Run("inspect_checkpoint", {"--file_name", Path("ckpt")}), 0);
  EXPECT_EQ(output_, "w (DT_FLOAT) [2]\n\n");
  EXPECT_EQ(Run("inspect_checkpoint",
                {"--file_name=" + Path("ckpt"), "--all_tensors"}),
            0);
  EXPECT_EQ(output_, "tensor_name:  w\n[1. 2.]\n");
  EXPECT_EQ(Run("optctl", {"graph", "checkpoint", Path("ckpt"), "-o", "json"}),
            0);
  EXPECT_THAT(output_, AllOf(HasSubstr("\"w\""), HasSubstr("DT_FLOAT")));
  EXPECT_NE(
      Run("optctl", {"graph", "checkpoint", Path("ckpt"), "--tensor_name=v"}),
      0);
  EXPECT_THAT(output_, HasSubstr("has no tensor 'v'"));
}

TEST_F(ModelFilesTest, PackagesRunAndAreSummarized) {
  const std::string package = Path("model.mmpb");
  EXPECT_EQ(Run("convert_graphdef_memmapped_format",
                {"--in_graph=" + FrozenModel(), "--out_graph=" + package,
                 "--min_conversion_tensor_size=8"}),
            0);
  EXPECT_EQ(output_, "Converted 1 nodes\n");
  EXPECT_EQ(SumOf(package), sum_);
  EXPECT_EQ(Run("summarize_graph", {"--in_graph=" + package}), 0);
  EXPECT_THAT(output_, HasSubstr("Found 2 (2) const parameters"));
  EXPECT_EQ(Run("optctl", {"graph", "benchmark", "--graph=" + package,
                           "--num_runs=1", "--max_secs=0.1"}),
            0)
      << output_;
}

// Converters join the names of the layers that they fuse.
TEST_F(ModelFilesTest, OutputsWithNamesLongerThanThoseOfFilesAreWritten) {
  const std::string layer(300, 'n');
  const std::string graph = Write("long.pbtxt", R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value {
        type: DT_FLOAT } } }
    node { name: ")" + layer + R"(/a" op: "Neg" input: "x"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: ")" + layer + R"(/b" op: "Abs" input: "x"
           attr { key: "T" value { type: DT_FLOAT } } })");
  ASSERT_EQ(
      Run("optctl", {"graph", "run", "--in_graph=" + graph,
                     "--input=x=" + Path("x.npy"), "--output=" + layer + "/a",
                     "--output=" + layer + "/b", "--out_dir=" + Path("long")}),
      0)
      << output_;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto files, ListFolder(Path("long")));
  EXPECT_EQ(files.size(), 2u);
}

TEST_F(ModelFilesTest, EncryptedModelsRunWithTheirKey) {
  const std::string key = Path("model.key"), sealed = Path("model.enc");
  EXPECT_EQ(Run("optctl",
                {"graph", "encrypt", "--in_graph=" + FrozenModel(),
                 "--out_graph=" + sealed, "--key_file=" + key, "--make_key"}),
            0)
      << output_;
  const std::vector<std::string> run = {"graph",
                                        "run",
                                        "--in_graph=" + sealed,
                                        "--input=x=" + Path("x.npy"),
                                        "--output=sum",
                                        "--out_dir=" + Path("out")};
  EXPECT_NE(Run("optctl", run), 0);
  EXPECT_THAT(output_, HasSubstr("OPTFARM_MODEL_KEY_FILE"));
  environment_ = {{"OPTFARM_MODEL_KEY_FILE", key}};
  EXPECT_EQ(SumOf(sealed), sum_);
  environment_ = {{"OPTFARM_MODEL_KEY", std::string(64, '0')}};
  EXPECT_EQ(Run("optctl", run), 2);
  EXPECT_THAT(output_, HasSubstr("does not decrypt"));
  environment_.clear();
  EXPECT_EQ(
      Run("optctl", {"graph", "decrypt", "--in_graph=" + sealed,
                     "--out_graph=" + Path("plain.pb"), "--key_file=" + key}),
      0);
  EXPECT_EQ(*ReadFile(Path("plain.pb")), *ReadFile(Path("frozen.pb")));
  // A key that is there is never overwritten.
  EXPECT_NE(Run("optctl",
                {"graph", "encrypt", "--in_graph=" + model_,
                 "--out_graph=" + sealed, "--key_file=" + key, "--make_key"}),
            0);
  EXPECT_THAT(output_, AllOf(HasSubstr("model.key' already"),
                             HasSubstr("leave out --make_key")));
}

TEST_F(ModelFilesTest, RunTakesSavedModelsAndCheckpoints) {
  const std::string saved = WriteSavedModel();
  const std::string archive = Path("export.tar.gz");
  SubprocessOptions tar;
  tar.argv = {"/bin/tar", "czf", archive, "-C", folder_, "export"};
  auto packing = Subprocess::Start(tar);
  ASSERT_THAT(packing, IsOk());
  const auto packed = packing->Wait(absl::Minutes(1));
  ASSERT_TRUE(packed.has_value() && packed->ok());
  const std::vector<std::string> kModels[] = {
      {saved},
      {archive},
      {saved, "--tags=serve", "--signature=serving_default"},
      {model_, "--checkpoint=" + Path("ckpt"), "--outputs=sum"}};
  for (const std::vector<std::string>& model : kModels) {
    std::vector<std::string> words = {"run"};
    words.insert(words.end(), model.begin(), model.end());
    words.insert(words.end(), {"--recipe=fp32", "--measure=false",
                               "--out_graph=" + Path("optimized.pb")});
    EXPECT_EQ(Run("optctl", words), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("Froze 1 variables of"));
    EXPECT_THAT(output_, HasSubstr("Frozen from "));
    EXPECT_EQ(SumOf(Path("optimized.pb")), sum_);
  }
}

TEST_F(ModelFilesTest, SaysWhatAModelNeedsToBeFrozen) {
  const std::string saved = WriteSavedModel();
  const struct {
    std::vector<std::string> flags;
    const char* says;
  } kCases[] = {
      {{saved, "--signature=other"}, "it has 'serving_default'"},
      {{saved, "--tags=gpu"}, "{serve}"},
      {{saved, "--checkpoint=" + Path("ckpt")}, "leave --checkpoint out"},
      {{model_, "--checkpoint=" + Path("ckpt")}, "--outputs=NAMES is needed"},
      {{model_, "--tags=serve"}, "--tags choose"},
      {{model_, "--signature=x"}, "has no signatures"},
      {{model_, "--checkpoint=" + Path("none"), "--outputs=sum"},
       "there is no checkpoint"},
      {{Write("bad.zip", "PK\x03\x04nothing")}, "cannot be unpacked"},
  };
  for (const auto& test : kCases) {
    std::vector<std::string> words = {"run"};
    words.insert(words.end(), test.flags.begin(), test.flags.end());
    words.push_back("--recipe=fp32");
    EXPECT_EQ(Run("optctl", words), 2);
    EXPECT_THAT(output_, HasSubstr(test.says));
  }
}

}  // namespace
}  // namespace optfarm::client_cli
