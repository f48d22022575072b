# Build rules of the house: one target per folder, its dependencies named.
#
#   gossamer_library(NAME SRCS a.cc ... DEPS target ...)      static library gossamer_NAME, or an interface one without SRCS
#   gossamer_program(NAME SRCS a.cc ... DEPS target ...)      executable NAME in <build>/bin
#   gossamer_test(NAME SRCS a_test.cc ... DEPS target ...)    GoogleTest binary NAME_test, one ctest entry
#   gossamer_benchmark(NAME SRCS ... DEPS ...)                executable NAME_benchmark in <build>/bin, never run by ctest

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Every object can go into libgossamer.so, too; its functions need not be
# replaceable by a program's, so that they are called as they are in a program.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Assertions stay on everywhere; sanitizers want frames, and lines.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Bit-for-bit replay: no contraction into fused multiply-add anywhere.
add_compile_options(-Wall -Wextra -Werror -Wno-unused-parameter -ffp-contract=off
                    -fno-math-errno -fno-semantic-interposition)
# Assertions name files from the root of the tree, so that objects, and what
# ccache keeps of them, are the same in every clone.
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wthread-safety -Wno-unused-lambda-capture)
endif()
if(CMAKE_UNITY_BUILD)
  # GCC takes a type for local to one file by the name of the file it compiles.
  add_compile_options(-Wno-subobject-linkage)
endif()
if(GOSSAMER_SANITIZE)
  add_compile_options(-fsanitize=${GOSSAMER_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${GOSSAMER_SANITIZE})
  if(GOSSAMER_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
if(GOSSAMER_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(GOSSAMER_SEEDED_BUGS)
  add_compile_definitions(GOSSAMER_SEEDED_BUGS)
endif()
include_directories(${CMAKE_SOURCE_DIR})

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(PkgConfig REQUIRED)

function(gossamer_library NAME)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(gossamer_${NAME} STATIC ${ARG_SRCS})
    target_link_libraries(gossamer_${NAME} PUBLIC ${ARG_DEPS})
  else()
    add_library(gossamer_${NAME} INTERFACE)
    target_link_libraries(gossamer_${NAME} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# A program's sources are not for unity builds: each command has its own examples
# and options in its unnamed namespace.
function(gossamer_program NAME)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_SRCS})
  set_target_properties(${NAME} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS})
endfunction()

# Ends tests that hang.  ThreadSanitizer makes a simulation ten times slower; tests
# with limits of their own multiply them by GOSSAMER_TIMES.
function(gossamer_time_limit SECONDS)
  set(TIMES 1)
  if(GOSSAMER_SANITIZE STREQUAL "thread")
    set(TIMES 8)
  elseif(GOSSAMER_SANITIZE)
    set(TIMES 3)
  endif()
  math(EXPR SECONDS "${SECONDS} * ${TIMES}")
  set_tests_properties(${ARGN} PROPERTIES TIMEOUT ${SECONDS})
  set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT GOSSAMER_TIMES=${TIMES})
endfunction()

function(gossamer_test NAME)
  if(NOT GOSSAMER_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  # Sources are compiled together where CMAKE_UNITY_BUILD is on.  In one unnamed
  # namespace, functions of one name would be overloads of each other.
  list(LENGTH ARG_SRCS COUNT)
  foreach(SRC ${ARG_SRCS})
    cmake_path(ABSOLUTE_PATH SRC)
    file(STRINGS ${SRC} UNNAMED REGEX "^namespace {" LIMIT_COUNT 1)
    if(COUNT GREATER 1 AND SRC MATCHES "_test.cc$" AND UNNAMED)
      cmake_path(GET SRC STEM NAMESPACE)
      message(FATAL_ERROR "${SRC}: write \"namespace ${NAMESPACE} {\" for the unnamed namespace: "
                          "${NAME}_test has several sources")
    endif()
  endforeach()
  add_executable(${NAME}_test ${ARG_SRCS})
  target_link_libraries(${NAME}_test PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  add_test(NAME ${NAME} COMMAND ${NAME}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  gossamer_time_limit(${ARG_TIMEOUT} ${NAME})
  # As the programs that compute with libtorch set it (runtime/daemon/peer_main.cc).
  set_property(TEST ${NAME} APPEND PROPERTY ENVIRONMENT MKL_CBWR=AUTO)
endfunction()

function(gossamer_benchmark NAME)
  if(NOT GOSSAMER_BENCHMARKS)
    return()
  endif()
  find_package(benchmark REQUIRED)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${NAME}_benchmark ${ARG_SRCS})
  set_target_properties(${NAME}_benchmark PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${NAME}_benchmark PRIVATE ${ARG_DEPS} benchmark::benchmark)
endfunction()
