// Preset `small` with chosen kernels, without building all of it: that it
// configures, that the files which differ there compile, and that a kernel
// that was not chosen leaves nothing behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "tests/support/test_data.h"

namespace optfarm {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::SourcePath;
using ::testing::HasSubstr;
using ::testing::Not;

class SmallPresetTest : public ::testing::Test {
 protected:
  SmallPresetTest() : folder_(FreshFolder()) {}

  std::string Path(absl::string_view name) const {
    return JoinPath(folder_, name);
  }

  // Runs a command to its end and keeps what it printed; whether it succeeded.
  bool Run(const std::vector<std::string>& argv) {
    SubprocessOptions options;
    options.argv = {"/usr/bin/env"};
    options.argv.insert(options.argv.end(), argv.begin(), argv.end());
    options.output_file = Path("log");
    options.working_folder = SourcePath("");
    EXPECT_TRUE(RemoveAll(Path("log")).ok());
    auto child = Subprocess::Start(options);
    if (!child.ok()) return false;
    const auto exit = child->Wait(absl::Minutes(5));
    output_ = ReadFile(Path("log")).value_or("");
    return exit && exit->ok();
  }

  bool Configure(const std::string& kernels) {
    EXPECT_TRUE(WriteFileAtomically(Path("kernels.txt"), kernels).ok());
    return Run({OPTFARM_CMAKE, "--preset", "small", "-B", Path("build"),
                absl::StrCat("-DCMAKE_CXX_COMPILER=", OPTFARM_CXX),
                "-DOPTFARM_KERNELS_FILE=" + Path("kernels.txt")});
  }

  // The symbols of one object file of the build, which is made first.
  std::string SymbolsOf(const std::string& object) {
    EXPECT_TRUE(Run(
        {"ninja", "-C", Path("build"), absl::StrCat("CMakeFiles/", object)}))
        << output_;
    EXPECT_TRUE(
        Run({"nm", "-C", Path(absl::StrCat("build/CMakeFiles/", object))}))
        << output_;
    return output_;
  }

  const std::string folder_;
  std::string output_;
};

TEST_F(SmallPresetTest, CompilesChosenKernelsAlone) {
  ASSERT_TRUE(Configure("# A little model.\nRelu float\nConst float\n"))
      << output_;
  EXPECT_THAT(output_, HasSubstr("Runtime with 2 kernels for float"));
  const std::string kernels = SymbolsOf(
      "optfarm_engine_runtime_reference.dir/engine/runtime/reference/math/"
      "activation.cc.o");
  EXPECT_THAT(kernels, HasSubstr("ReluOp"));
  EXPECT_THAT(kernels, Not(HasSubstr("Relu6Op")));
  EXPECT_THAT(kernels, Not(HasSubstr("BiasAdd")));
  // None of a family's.
  const std::string joining = SymbolsOf(
      "optfarm_engine_runtime_reference.dir/engine/runtime/reference/arrays/"
      "concat.cc.o");
  EXPECT_THAT(joining, HasSubstr("AddConcatKernels"));
  EXPECT_THAT(joining, Not(HasSubstr("Interleave")));
}

TEST_F(SmallPresetTest, ReadsNoTextAndHasNoFastKernels) {
  ASSERT_TRUE(Configure("Relu float\n")) << output_;
  EXPECT_THAT(SymbolsOf("optfarm_engine_formats.dir/engine/formats/tensorflow/"
                        "graph_text.cc.o"),
              Not(HasSubstr("TextFormat")));
  EXPECT_THAT(SymbolsOf("optfarm_engine_api.dir/engine/api/session.cc.o"),
              HasSubstr("optfarm_session"));
  EXPECT_TRUE(Run({"ninja", "-C", Path("build"), "-t", "targets", "all"}));
  EXPECT_THAT(output_, Not(HasSubstr("runtime/ukernels/int8")));
}

TEST_F(SmallPresetTest, SaysWhatIsWrongWithTheListOfKernels) {
  EXPECT_FALSE(Configure("# nothing\n"));
  EXPECT_THAT(output_, HasSubstr("names no op"));
  EXPECT_FALSE(Configure("Relu Float!\n"));
  EXPECT_THAT(output_, HasSubstr("is not a dtype"));
}

}  // namespace
}  // namespace optfarm
