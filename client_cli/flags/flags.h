// The flags and arguments of a command, declared once: parsing, conversion,
// error messages and help all come from the declaration.

#ifndef OPTFARM_CLIENT_CLI_FLAGS_FLAGS_H_
#define OPTFARM_CLIENT_CLI_FLAGS_FLAGS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace optfarm::client_cli {

struct FlagDeclaration {
  enum class Kind {
    kSwitch,      // --wait, --wait=false
    kSingle,      // --recipe=int8
    kRepeatable,  // --device=a --device=b
    kArgument,    // MODEL
  };
  // "recipe", without dashes; of an argument its upper-case name.
  std::string name;
  // What stands for the value in help: "FILE".
  std::string placeholder;
  std::string help;
  Kind kind = Kind::kSingle;
  bool required = false;
  // An argument that takes all words that are left.
  bool several = false;
  // For optctl's own use; not in help.
  bool hidden = false;
  // The value names a file or folder. One that is read may be "-", standard
  // input, and one that is written "-", standard output.
  bool is_path = false;
  bool reads = false, writes = false;
  // The values that are allowed; empty: others than these few.
  std::vector<std::string> choices;
  // The one-letter form, "" for none.
  std::string letter;
  // Converts and stores one value. ERRORS: InvalidArgument saying what is wrong
  // with the value and what is allowed; the flag's name is added by the caller.
  std::function<absl::Status(const std::string& value)> store;
};

// OWNERSHIP: the variables bound to flags must outlive the parse. Each keeps
// the value it has when its flag is not given: that is the default.
class FlagSet {
 public:
  void Switch(absl::string_view name, absl::string_view help, bool* value);
  void Text(absl::string_view name, absl::string_view placeholder,
            absl::string_view help, std::string* value);
  // A file or folder; a leading "~/" becomes the home folder, which shells
  // leave alone after "=".
  void Path(absl::string_view name, absl::string_view placeholder,
            absl::string_view help, std::string* value);
  // May be given several times; every value is appended.
  void Texts(absl::string_view name, absl::string_view placeholder,
             absl::string_view help, std::vector<std::string>* values);
  void Integer(absl::string_view name, absl::string_view help, int64_t* value,
               int64_t least = 0,
               int64_t most = std::numeric_limits<int32_t>::max());
  // Stays absent when the flag is not given.
  void Number(absl::string_view name, absl::string_view help,
              std::optional<double>* value);
  // "30s", "1.5m", "2h", "7d", "2w", or seconds without a unit.
  void Duration(absl::string_view name, absl::string_view help,
                absl::Duration* value);
  // A list of whole numbers >= 1: "1,4". Replaces the default.
  void Integers(absl::string_view name, absl::string_view help,
                std::vector<int32_t>* values);
  // Taken in any case, stored as it is declared.
  void Choice(absl::string_view name, absl::string_view help,
              std::vector<std::string> choices, std::string* value);
  void Argument(absl::string_view name, absl::string_view help,
                std::string* value, bool required = true);
  // One or more of them, the last of the arguments.
  void Arguments(absl::string_view name, absl::string_view help,
                 std::vector<std::string>* values);
  // An argument that is a file or folder.
  void PathArgument(absl::string_view name, absl::string_view help,
                    std::string* value);

  // Makes the flag declared last a required one, a hidden one, or gives it a
  // letter.
  void Required();
  void Hidden();
  void Letter(absl::string_view letter);
  // The path declared last is a file that is read or written: see
  // FlagDeclaration.
  void Reads();
  void Writes();

  const std::vector<FlagDeclaration>& declarations() const {
    return declarations_;
  }

 private:
  FlagDeclaration& Add(absl::string_view name, absl::string_view placeholder,
                       absl::string_view help, FlagDeclaration::Kind kind);

  std::vector<FlagDeclaration> declarations_;
};

// The part of a help page about flags: "  --recipe=NAME   What it is ...", two
// columns, wrapped at 80 characters.
std::string DescribeFlags(const std::vector<FlagDeclaration>& flags);

// `path` with a leading "~/" replaced by $HOME where that is set.
std::string ExpandHome(const std::string& path);

// `text` wrapped at 80 characters, each line after `indent` blanks. Lines that
// begin with a blank are kept as they are.
std::string WrapText(absl::string_view text, int indent);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_FLAGS_FLAGS_H_
