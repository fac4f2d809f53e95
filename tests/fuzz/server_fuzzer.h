// What fuzz targets of a whole server in this process tell libFuzzer. For one
// file of a program.

#ifndef OPTFARM_TESTS_FUZZ_SERVER_FUZZER_H_
#define OPTFARM_TESTS_FUZZ_SERVER_FUZZER_H_

#include <vector>

// OpenSSL keeps tables of its own to its end.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcrypto.so";
}

// After each input libFuzzer would look for leaks, since a server's threads
// free later, and weigh every feature it ever saw. Both take longer than the
// calls. What the command line says comes later and counts.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  static char leaks[] = "-detect_leaks=0";
  static char weights[] = "-entropic=0";
  static std::vector<char*> all(*arguments, *arguments + *count);
  all.insert(all.begin() + 1, {leaks, weights});
  all.push_back(nullptr);
  *count = static_cast<int>(all.size()) - 1;
  *arguments = all.data();
  return 0;
}

#endif  // OPTFARM_TESTS_FUZZ_SERVER_FUZZER_H_
