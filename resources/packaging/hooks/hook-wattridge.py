"""For PyInstaller: the package with its resources; the sources that the helper's installation reads stay files."""

from pathlib import Path

from PyInstaller.utils.hooks import collect_data_files, collect_submodules, copy_metadata, get_package_paths

# The plug-in for pytest is of no use where there is no Python to install pytest into.
hiddenimports = collect_submodules(
    "wattridge", filter=lambda name: not name.endswith(("pytest_plugin", "energy_tests"))
)
_folder = Path(get_package_paths("wattridge")[1])
_control = _folder / "engine" / "control"
_sources = (*_control.glob("helper/*.py"), _control / "root_setup.py", _folder / "sensors" / "amd" / "binding.py")
datas = [
    *collect_data_files("wattridge", excludes=["resources/packaging/**", "resources/decisions/**"]),
    *((str(path), str(Path("wattridge", path.parent.relative_to(_folder)))) for path in _sources),
    *copy_metadata("wattridge"),
]
